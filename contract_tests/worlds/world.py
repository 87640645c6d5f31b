"""The places in which the contract tests keep tables. What one cannot do is said here, with the reason."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from contract_tests.worlds.bridge import Client, Server
from contract_tests.worlds.marking import MarkingServer
from contract_tests.worlds.roots import LocalRoot, Root, S3Root
from contract_tests.worlds.s3 import S3

FLAT = "V1 is one level of tables: it keeps no namespaces (seed 002)"


@dataclass(frozen=True)
class World:
    name: str
    settings: str
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Ability -> reason. Tests marked `needs(ability)` are expected to fail here, strictly."""
    on_s3: bool = False
    s3: S3 | None = None
    """The server, once it runs."""
    unsafe: str = 'allow_expire = true\npurge_after = "0s"\n'
    """The settings that let contract tests do what the defaults keep Iceberg clients from."""

    def configuration(self, root: Root | Path, more: str = "") -> str:
        options = root.options if isinstance(root, Root) else {}
        storage = "".join(f'storage.{key} = "{value}"\n' for key, value in options.items())
        return f'[warehouses.main]\nbackend = "dir"\nroot = "{root}"\n{self.unsafe}{self.settings}{storage}{more}'

    def make_root(self, folder: Path) -> Root:
        if not self.on_s3:
            return LocalRoot(folder / "tables")
        assert self.s3
        return S3Root(self.s3.bucket(self.name), self.s3.options)

    def server(self, configuration: Path, *arguments: str) -> Server:
        return Server("--config", configuration, "--port", "0", *arguments, cwd=configuration.parent)

    def lance_id(self, table: str) -> str:
        """What the Lance protocol calls a table of the namespace `default`."""
        return table

    @contextmanager
    def start_another(self, first: "Bridge") -> Iterator["Bridge"]:
        """A second server on the folder of the first."""
        file = first.folder / "irc-bridge.toml"
        with self.server(file) as server, server.client() as client:
            yield replace(first, server=server, client=client)

    @contextmanager
    def start(self, folder: Path, more: str = "", *arguments: str) -> Iterator["Bridge"]:
        file = folder / "irc-bridge.toml"
        root = self.make_root(folder)
        file.write_text(self.configuration(root, more))
        with self.server(file, *arguments) as server, server.client() as client:
            yield Bridge(self, server, client, root, folder)
        assert "Traceback" not in (text := server.text()), text[text.index("Traceback") :][:5000]


@dataclass(frozen=True)
class UpstreamWorld(World):
    """The bridge before an IRC server that never heard of Lance. All tests share that server."""

    url: str = ""
    warehouse: Path | None = None
    """The folder in which it keeps tables."""
    bucket: str = ""
    """The same on S3."""

    def configuration(self, root: Root | Path, more: str = "") -> str:
        options = self.s3.options if self.s3 else {}
        storage = "".join(f'storage.{key} = "{value}"\n' for key, value in options.items())
        settings = f"{self.unsafe}{self.settings}{storage}{more}"
        allowed = f'allowed_locations = ["{root}"]\n'
        return f'[warehouses.main]\nbackend = "irc"\nuri = "{self.url}"\n{allowed}{settings}'

    def server(self, configuration: Path, *arguments: str) -> Server:
        return MarkingServer("--config", configuration, "--port", "0", *arguments, cwd=configuration.parent)

    def lance_id(self, table: str) -> str:
        return f"default${table}"

    def make_root(self, folder: Path) -> Root:
        if self.s3:
            return S3Root(self.bucket, self.s3.options, "wh")
        assert self.warehouse
        return LocalRoot(self.warehouse)


@dataclass(frozen=True)
class Bridge:
    world: World
    server: Server
    client: Client
    root: Root
    """What the server serves as warehouse `main`."""
    folder: Path
    """Where it runs, with its settings."""


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
IRC = UpstreamWorld(
    "irc",
    "",
    {
        "root tables": "an IRC server keeps tables in namespaces, and has none of its own",
        "folders as tables": "what a table is, the server knows",
        "Lance properties": "the properties of a table are the server's, not those in its Lance metadata",
        "property versions": "the properties of a table are the server's: a commit of them makes no version",
        "own locations": "where tables may lie, the server decides",
        "unmarked tables": "a table that does not say that it is a Lance table is an Iceberg table",
        "answers of its own": "what is not about Lance goes on to the server, which answers as it likes",
        "one table at a time": "its transactions are over several tables",
    },
)
NESSIE = replace(IRC, name="nessie", on_s3=True)
VERSIONS = [
    replace(world, name=f"{world.name}-versions", settings=f"{world.settings}table_version_management = true\n")
    for world in (COMPATIBLE, MANIFEST)
]
LOCAL_WORLDS = [COMPATIBLE, LISTING, MANIFEST, *VERSIONS]
S3_WORLDS = [replace(world, name=f"{world.name}-s3", on_s3=True) for world in LOCAL_WORLDS]
WORLDS = [*LOCAL_WORLDS, *S3_WORLDS, IRC, NESSIE]


def _worlds(*worlds: World) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("world", worlds, indirect=True, ids=lambda world: world.name, scope="session")


NESTED_WORLDS = _worlds(COMPATIBLE, MANIFEST)
"""For long searches: where there are no namespaces they would only fail for a long time, as expected. What they
look for does not depend on the storage."""
NESTED_WORLDS_AND_S3 = _worlds(COMPATIBLE, MANIFEST, S3_WORLDS[0])
"""For those in which it does: one world on S3 will do."""
ONE_WORLD = _worlds(COMPATIBLE)
"""For what the protocol alone decides, whatever the world."""
