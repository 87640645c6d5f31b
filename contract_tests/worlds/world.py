"""The places in which the contract tests keep tables. What one cannot do is said here, with the reason."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contract_tests.worlds.bridge import Client, Server

FLAT = "V1 is one level of tables: it keeps no namespaces (seed 002)"


@dataclass(frozen=True)
class World:
    name: str
    settings: str
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Ability -> reason. Tests marked `needs(ability)` are expected to fail here, strictly."""

    def configuration(self, root: Path, more: str = "") -> str:
        return f'[warehouses.main]\nbackend = "dir"\nroot = "{root}"\n{self.settings}{more}'

    @contextmanager
    def start_another(self, first: "Bridge") -> Iterator["Bridge"]:
        """A second server on the folder of the first."""
        file = first.root.parent / "irc-bridge.toml"
        with Server("--config", file, "--port", "0", cwd=file.parent) as server, server.client() as client:
            yield Bridge(self, server, client, first.root)

    @contextmanager
    def start(self, folder: Path, more: str = "", *arguments: str) -> Iterator["Bridge"]:
        file = folder / "irc-bridge.toml"
        file.write_text(self.configuration(folder / "tables", more))
        with (
            Server("--config", file, "--port", "0", *arguments, cwd=folder) as server,
            server.client() as client,
        ):
            yield Bridge(self, server, client, folder / "tables")
        assert not [line for line in server.log if "Traceback" in line]


@dataclass(frozen=True)
class Bridge:
    world: World
    server: Server
    client: Client
    root: Path
    """The folder that the server serves as warehouse `main`."""


COMPATIBLE = World("compatible", "")
LISTING = World(
    "listing",
    "manifest_enabled = false\n",
    {
        "child namespaces": FLAT,
        "rename": "in V1 the name of a table is the name of its folder",
        "chosen location": "in V1 the name of a table is the name of its folder",
    },
)
MANIFEST = World(
    "manifest",
    "dir_listing_enabled = false\n",
    {"folders as tables": "without directory listing a folder is no table until it is registered"},
)
WORLDS = [COMPATIBLE, LISTING, MANIFEST]

NESTED_WORLDS = pytest.mark.parametrize(
    "world",
    [world for world in WORLDS if "child namespaces" not in world.cannot],
    indirect=True,
    ids=lambda world: world.name,
    scope="session",
)
"""For long searches: where there are no namespaces they would only fail for a long time, as expected."""
ONE_WORLD = pytest.mark.parametrize("world", [COMPATIBLE], indirect=True, ids=["compatible"], scope="session")
"""For what the protocol alone decides, whatever the world."""
