"""Lance tables that have lain for a month, and what must be the same after an engine has cleaned up."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from click.testing import CliRunner
from lance.namespace import RestNamespace

from contract_tests.worlds.bridge import Client, Server, assert_ok, namespace_path
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.writer import folder_of
from irc_bridge.backends import settings_models
from irc_bridge.catalog.walking import tables_below
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.main import cli
from irc_bridge.pipeline.mirroring import Mirroring, Versions, in_this_process
from irc_bridge.settings import load_settings

AGE = 40 * 24 * 3600
"""Seconds. Engines take files of the last one to seven days for those of a writer who is still at work."""
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "name", "type": "string", "required": False},
    ],
}
PURGE_AFTER = timedelta(days=7)
"""For how long the files of a purged table stay, unless the settings say otherwise."""
PLACES = {
    "dir": 'root = "{folder}/dir"',
    "irc": 'backend = "irc"\nuri = "{url}"\nallowed_locations = ["{folder}/behind"]',
}
SETTINGS = {
    "": "",
    "_read_only": "read_only = true",
    "_unguarded": "guard_snapshot = false",
    "_expiring": "allow_expire = true",
}
"""What the name of a warehouse ends with, and a setting of it. All with one beginning have the same tables."""
WAREHOUSES = [f"{place}{end}" for place in PLACES for end in SETTINGS]


def configuration(folder: Path, url: str) -> str:
    warehouses = [
        f"[warehouses.{place}{end}]\n{text.format(folder=folder, url=url)}\n{setting}\n"
        for place, text in PLACES.items()
        for end, setting in SETTINGS.items()
    ]
    return "".join(warehouses)


@dataclass(frozen=True)
class AgedTable:
    """A table with deletions, an index, tags, a column that came later and a mirror of every version."""

    url: str
    """The server's."""
    warehouse: str
    namespace: str
    name: str
    location: str
    rows: Mapping[int, int]
    """Version -> rows that pylance reads."""

    @property
    def folder(self) -> Path:
        return folder_of(self.location)

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def restore(self, files: Mapping[str, bytes]) -> None:
        """What the server behind the bridge wrote meanwhile stays: it is that server's truth."""
        for name in self.files().keys() - files.keys():
            if not _is_of_the_server(name, self):
                (self.folder / name).unlink()
        for name, content in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        age(self.folder)

    def register(self) -> None:
        with Client(self.url, self.warehouse) as client:
            if (self.namespace,) not in client.namespaces():
                client.create_namespace(self.namespace)
            body = {"name": self.name, "metadata-location": self.location}
            assert_ok(client.post(f"{namespace_path((self.namespace,))}/register", json=body))

    def is_listed(self) -> bool:
        with Client(self.url, self.warehouse) as client:
            return (self.namespace,) in client.namespaces() and self.name in client.tables((self.namespace,))

    def metadata(self, **query: str) -> dict[str, Any]:
        with Client(self.url, self.warehouse) as client:
            return client.metadata((self.namespace,), self.name, **query)


@dataclass(frozen=True)
class Way:
    """A table as an engine reaches it."""

    catalog: str
    """A warehouse of the bridge, or `straight`."""
    table: AgedTable

    @property
    def identifier(self) -> str:
        return f"{self.table.namespace}.{self.table.name}"


@dataclass(frozen=True)
class Estate:
    """A bridge with aged tables in a folder and before another server."""

    folder: Path
    url: str
    behind: str
    """The server behind the bridge."""
    tables: Mapping[str, AgedTable]

    def way(self, name: str) -> "Way":
        catalog, _, kind = name.partition("-")
        return Way(catalog, self.tables[f"{'dir' if catalog.startswith('dir') else 'irc'}-{kind}"])

    def uri(self, catalog: str) -> str:
        return self.behind if catalog == "straight" else self.url

    def mirror(self) -> None:
        """Every version of every table."""
        warehouses = open_warehouses(load_settings(self.folder / "irc-bridge.toml", {}, {}, settings_models()))
        mirroring = Mirroring(Versions.parse("all"), in_this_process)
        for name in PLACES:
            for table in tables_below(warehouses[name].catalog):
                mirroring.bring(".".join(table), warehouses[name].catalog, table)

    def deregistered(self) -> list[dict[str, Any]]:
        """The rows of `irc-bridge deregistered`."""
        command = ["deregistered", "--config", str(self.folder / "irc-bridge.toml"), "--output", "json"]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, (done.output, done.exception)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows


TABLES = ["dir-storage", "dir-impl", "dir-native", "irc-storage", "irc-impl"]
"""The warehouse, and who decides about the versions. The native table lies in the root, where pylance put it."""
ALONE = ["dir-alone", "irc-alone"]
"""Tables that are alone in their namespace."""
READ_ONLY = ["dir_read_only-storage", "dir_read_only-impl", "irc_read_only-storage", "irc_read_only-impl"]
STRAIGHT = ["straight-storage", "straight-impl"]
"""The same tables, in warehouses that take no change, and at the server behind the bridge."""


@contextmanager
def aged_estate(folder: Path) -> Iterator[Estate]:
    (folder / "behind").mkdir(parents=True)
    with ExitStack() as stack:
        behind = stack.enter_context(reference_server(folder / "behind"))
        (folder / "irc-bridge.toml").write_text(configuration(folder, behind))
        server = stack.enter_context(Server("--port", "0", cwd=folder))
        tables = {name: make_table(server.url, folder, name) for name in [*TABLES, *ALONE]}
        estate = Estate(folder, server.url, behind, tables)
        estate.mirror()
        age(folder)
        yield estate
        text = server.text()
        assert "Traceback" not in text, text[text.index("Traceback") :][:5000]


def make_table(url: str, folder: Path, name: str) -> AgedTable:
    warehouse, _, kind = name.partition("-")
    namespace = {"native": "default", "alone": "lonely", "spare": "spare"}.get(kind, "aged")
    with Client(url, warehouse) as client:
        if (namespace,) not in client.namespaces():
            client.create_namespace(namespace)
        if kind == "native":
            lance.write_dataset(_rows(0, 0), folder / "dir/native.lance")
        else:
            properties = {"table_type": "lance", "managed_by": "impl" if kind == "impl" else "storage"}
            client.create_table((namespace,), kind, schema=SCHEMA, properties=properties)
        levels = [kind] if kind == "native" else [namespace, kind]
        _write_versions(RestNamespace(uri=f"{url}/lance/{warehouse}"), levels)
        location = client.metadata((namespace,), kind)["location"]
    versions = [version["version"] for version in lance.dataset(str(folder_of(location))).versions()]
    rows = {each: lance.dataset(str(folder_of(location)), version=each).count_rows() for each in versions}
    return AgedTable(url, warehouse, namespace, kind, location, rows)


def _write_versions(namespace: RestNamespace, levels: list[str]) -> None:
    """By way of the catalog where that decides about versions, as pylance does by itself."""
    place: dict[str, Any] = {"namespace_client": namespace, "table_id": levels}
    lance.write_dataset(_rows(0, 20), mode="append", max_rows_per_file=8, **place)
    lance.dataset(**place).tags.create("first", 2)
    lance.write_dataset(_rows(20, 30), mode="append", **place)
    lance.dataset(**place).delete("id % 7 = 3")
    lance.dataset(**place).create_scalar_index("id", "BTREE")
    lance.dataset(**place).add_columns({"twice": "id * 2"})
    lance.dataset(**place).update({"name": "'new'"}, where="id < 3")
    lance.dataset(**place).optimize.compact_files(target_rows_per_fragment=16)


def _rows(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    names = pa.array([f"name {each}" for each in ids], pa.string())
    return pa.table({"id": pa.array(ids, pa.int64()), "name": names})


def age(folder: Path) -> None:
    then = time.time() - AGE
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (then, then))


def require_unchanged(table: AgedTable, before: Mapping[str, bytes]) -> None:
    """Every file is there, byte for byte; what came is Lance's own or lies below `_iceberg`; pylance reads each
    version."""
    after = table.files()
    ours = {name: content for name, content in before.items() if not _is_of_the_server(name, table)}
    harmed = [name for name, content in ours.items() if after.get(name) != content and name != HINT]
    assert not harmed, f"{len(harmed)} of {len(before)} files are gone or changed: {harmed[:10]}"
    stray = [name for name in after.keys() - before.keys() if not _may_appear(name, table)]
    assert not stray, stray
    for version, count in table.rows.items():
        assert lance.dataset(str(table.folder), version=version).to_table().num_rows == count


HINT = "_versions/latest_version_hint.json"
NEW = [
    r"_iceberg/.+",
    r"_irc_bridge/.+",
    r"_refs/tags/[^/]+\.json",
    r"_versions/\d{20}\.manifest",
    r"_transactions/[^/]+\.txn",
]
"""What engines may leave, and what commits of properties and tags leave."""


def _may_appear(name: str, table: AgedTable) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in NEW) or _is_of_the_server(name, table)


def _is_of_the_server(name: str, table: AgedTable) -> bool:
    """Whether the server behind the bridge wrote it, beside the table that it knows."""
    return table.warehouse == "irc" and re.fullmatch(r"metadata/[^/]+\.metadata\.json(\.crc)?", name) is not None


@contextmanager
def unharmed(table: AgedTable) -> Iterator[None]:
    """What happens in the block must leave the table whole. If it does not the table is restored, so that it harms
    no other test."""
    before = table.files()
    assert len(before) > 30 and any(name.startswith("_indices/") for name in before)
    try:
        yield
        require_unchanged(table, before)
    except BaseException:
        table.restore(before)
        if not table.is_listed():
            table.register()
        raise


def ways(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", names)


def require_dropped(estate: Estate, table: AgedTable, purged: bool = False) -> None:
    """The name is gone. `irc-bridge deregistered` shows the table, one that was purged with the day on which its
    files go, and registering brings it back with all versions."""
    assert not table.is_listed()
    rows = [row for row in estate.deregistered() if row["location"] == table.location]
    if purged or table.warehouse == "dir":
        assert {row["warehouse"] for row in rows} == {f"{table.warehouse}{end}" for end in SETTINGS}
    removed_after = {row["removed_after"] for row in rows}
    if purged:
        moment = datetime.fromisoformat(removed_after.pop())
        assert abs(moment - datetime.now(UTC) - PURGE_AFTER) < timedelta(minutes=5)
    assert removed_after <= {None}
    table.register()
    assert table.is_listed()
    listed = {snapshot["snapshot-id"] for snapshot in table.metadata(snapshots="all")["snapshots"]}
    assert table.rows.keys() <= listed
    assert not [row for row in estate.deregistered() if row["location"] == table.location]
