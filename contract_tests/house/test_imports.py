"""Arrows between the rooms go down only, and a heavy library stays in its own room (house plan)."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import irc_bridge

PACKAGE = Path(irc_bridge.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

BELOW = {
    "masking": set(),
    "errors": {"masking"},
    "names": {"errors"},
    "durations": set(),
    "answers": set(),
    "layers": {"errors", "names"},
    "settings_fields": {"durations"},
    "settings": {"errors", "names", "durations", "layers", "masking", "settings_fields"},
    "catalog": {"errors", "names"},
    "translation": {"errors", "names", "catalog"},
    "storage": {"errors", "catalog"},
    "lance_store": {"errors", "names", "catalog", "storage"},
    "lance_catalog": {"errors", "names", "catalog", "storage", "lance_store"},
    "irc_client": {"errors", "names", "answers", "catalog"},
    "backends": {
        *("errors", "names", "answers", "settings_fields", "catalog", "storage", "lance_store", "lance_catalog"),
        "irc_client",
    },
    "client": {"errors", "names", "catalog", "storage", "lance_store", "irc_client", "backends"},
    "mirror": {"errors", "catalog", "translation", "storage", "lance_store"},
    "pipeline": {"errors", "names", "catalog", "translation", "storage", "lance_store", "mirror"},
    "http": {"errors", "names", "catalog"},
    "iceberg_rest": {"errors", "names", "answers", "http", "catalog", "translation", "mirror"},
    "lance_rest": {"errors", "names", "http", "catalog"},
    "server": {"errors", "names", "settings", "http", "catalog", "iceberg_rest", "lance_rest"},
    "cli": {
        "errors",
        "names",
        "durations",
        "settings",
        "settings_fields",
        "masking",
        "catalog",
        "storage",
        "lance_store",
        "backends",
        "server",
        "pipeline",
    },
}
"""What a room may import beside itself."""

ONLY_IN = {
    "lance": {"lance_store"},
    "obstore": {"storage"},
    "starlette": {"http", "iceberg_rest", "lance_rest", "server", "cli"},
    "uvicorn": {"server", "cli"},
    "click": {"cli"},
    "rich": {"cli", "pipeline"},
    "pyiceberg": {"translation", "iceberg_rest", "mirror", "pipeline"},
    "pyarrow": {
        *("translation", "lance_store", "lance_catalog", "backends", "catalog", "iceberg_rest", "lance_rest"),
        *("mirror", "pipeline"),
    },
    "requests": {"irc_client"},
    "httptools": {"irc_client", "server"},
    "pyspark": {"pipeline"},
}
HEAVY = ["lance", "pyarrow", "pyiceberg", "starlette", "uvicorn", "obstore", "requests", "pyspark"]


def room_of(file: Path) -> str:
    first = file.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@cache
def imports_of(file: Path) -> list[str]:
    return list(imported(file, ast.parse(file.read_text())))


def imported(file: Path, tree: ast.AST) -> Iterator[str]:
    package = ["irc_bridge", *file.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module == "irc_bridge":
                yield from (f"irc_bridge.{alias.name}" for alias in node.names)
            else:
                yield module


def test_every_room_is_in_the_plan() -> None:
    rooms = {room_of(file) for file in FILES} - {"__init__", "__main__"}
    assert rooms <= set(BELOW)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_arrow_goes_up(file: Path) -> None:
    room = room_of(file)
    if room in ("__init__", "__main__"):
        return
    for name in imports_of(file):
        parts = name.split(".")
        if parts[0] == "irc_bridge" and len(parts) > 1 and parts[1] != "__version__":
            assert parts[1] == room or parts[1] in BELOW[room], f"{file} imports {name}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_library_stays_in_its_room(file: Path) -> None:
    for name in imports_of(file):
        rooms = ONLY_IN.get(name.split(".")[0])
        assert rooms is None or room_of(file) in rooms, f"{file} imports {name}"


def test_backends_are_siblings() -> None:
    for file in (PACKAGE / "backends").glob("*/*.py"):
        for name in imports_of(file):
            parts = name.split(".")
            assert parts[:2] != ["irc_bridge", "backends"] or parts[2:3] in ([], [file.parent.name]), name


def test_only_the_command_line_turns_settings_into_backends() -> None:
    users = {room_of(file) for file in FILES for name in imports_of(file) if "irc_bridge.backends" in name}
    assert users == {"backends", "client", "cli"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["serve", "--help"], ["config"]])
def test_help_needs_no_heavy_library(tmp_path: Path, arguments: list[str]) -> None:
    code = (
        "import sys; from irc_bridge.cli.main import main\n"
        f"sys.argv = ['irc-bridge', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "loaded: []"


def test_a_process_that_imports_the_client_gets_no_server_and_no_engine() -> None:
    code = (
        "import sys, irc_bridge.client\n"
        "others = {'starlette', 'uvicorn', 'pyspark', 'pyiceberg', 'click', 'lance', 'obstore'}\n"
        "print('loaded:', sorted(others & sys.modules.keys()), 'requests' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "loaded: [] True"


def test_the_client_takes_no_more_of_the_catalog_than_its_words() -> None:
    taken = {name for file in (PACKAGE / "client").glob("*.py") for name in imports_of(file)}
    assert {name for name in taken if "catalog" in name} == {"irc_bridge.catalog.models"}


def test_an_arrow_that_goes_up_is_found(tmp_path: Path) -> None:
    up = ast.parse("def late():\n    from irc_bridge.server import app\n    import lance.namespace\n")
    assert list(imported(PACKAGE / "catalog" / "x.py", up)) == ["irc_bridge.server", "lance.namespace"]
    relative = ast.parse("from .. import errors\nfrom ..server import app\nfrom . import models\n")
    assert list(imported(PACKAGE / "catalog" / "x.py", relative)) == [
        "irc_bridge.errors",
        "irc_bridge.server",
        "irc_bridge.catalog",
    ]
