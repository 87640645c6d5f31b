"""The bridge before another Iceberg REST server."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contract_tests.worlds.bridge import Server


@contextmanager
def bridge_over(
    url: str, folder: Path, more: str = "", storage: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Its warehouse `main` is what the server at `url` keeps. `more` are further settings of that warehouse."""
    options = "".join(f'storage.{key} = "{value}"\n' for key, value in (storage or {}).items())
    folder.mkdir(exist_ok=True)
    (folder / "irc-bridge.toml").write_text(f'[warehouses.main]\nbackend = "irc"\nuri = "{url}"\n{more}{options}')
    with Server("--port", "0", cwd=folder) as server:
        yield server
    assert "Traceback" not in (text := server.text()), text[text.index("Traceback") :][:5000]
