"""Stock Lance writers, who know nothing of this server, commit through it; Iceberg clients see what they did."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest
from pyiceberg.catalog import Catalog, load_catalog

from contract_tests.worlds.bridge import Server
from contract_tests.worlds.s3 import S3

ROWS = pa.table({"id": pa.array([1, 2, 3, 4], pa.int64()), "name": ["a", "b", "c", "d"]})
MORE = pa.table({"id": pa.array([5, 6], pa.int64()), "name": ["e", "f"]})


@dataclass(frozen=True)
class Served:
    server: Server
    impl: bool
    catalog: Catalog
    options: Mapping[str, str]
    """With which the storage is reached past the server."""
    has_root_tables: bool = True

    def root_table(self, name: str) -> list[str]:
        return [name] if self.has_root_tables else ["default", name]

    @property
    def namespace(self) -> RestNamespace:
        return RestNamespace(uri=f"{self.server.url}/lance")

    def commits(self, name: str) -> int:
        """How many versions were made through the server."""
        return sum(f"{name}/version/create 200" in line for line in self.server.log)

    def require(self, table: list[str], version: int, rows: int) -> None:
        """Iceberg clients see this version, and it came by the way that the table wants."""
        levels = ["default", *table] if len(table) == 1 else table
        snapshot = self.catalog.load_table(tuple(levels)).current_snapshot()
        assert snapshot is not None
        assert snapshot.snapshot_id == version
        assert snapshot.summary is not None
        assert snapshot.summary["total-records"] == str(rows)
        assert self.commits(table[-1]) == (version if self.impl else 0)


PLACES = ["local storage", "local impl", "local impl rows", "s3 storage", "s3 impl", "irc storage", "irc impl"]


@pytest.fixture(scope="module", params=PLACES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """In the last kind of local place the catalog's manifest keeps the versions. Writers on S3 get their
    credentials from the server."""
    place, managed_by, *rows = request.param.split()
    folder = tmp_path_factory.mktemp("served")
    root, options = str(folder / "tables"), {}
    if place == "s3":
        s3: S3 = request.getfixturevalue("s3")
        root, options = s3.bucket("writers"), dict(s3.options)
    where = f'root = "{root}"\ntable_version_management = {"true" if rows else "false"}\n'
    if place == "irc":
        where = f'backend = "irc"\nuri = "{request.getfixturevalue("upstream").url}"\n'
    (folder / "irc-bridge.toml").write_text(
        f'[warehouses.main]\n{where}default_managed_by = "{managed_by}"\nvend_credentials = true\n'
        + "".join(f'storage.{key} = "{value}"\n' for key, value in options.items())
    )
    with Server("--port", "0", cwd=folder) as server:
        catalog = load_catalog("irc", type="rest", uri=server.url, warehouse="main")
        yield Served(server, managed_by == "impl", catalog, options, place != "irc")


@pytest.fixture(params=["root", "child"])
def table(request: pytest.FixtureRequest, served: Served, name: str) -> list[str]:
    if request.param == "root":
        return served.root_table(name)
    served.namespace.create_namespace(CreateNamespaceRequest(id=[f"ns {name}"]))
    return [f"ns {name}", name]


def write(served: Served, table: list[str], rows: pa.Table, mode: str) -> Any:
    return lance.write_dataset(rows, namespace_client=served.namespace, table_id=table, mode=mode)


def test_pylance(served: Served, table: list[str]) -> None:
    served.require(table, write(served, table, ROWS, "create").version, 4)
    served.require(table, write(served, table, MORE, "append").version, 6)
    dataset = write(served, table, ROWS, "overwrite")
    served.require(table, dataset.version, 4)
    dataset.delete("id = 1")
    served.require(table, dataset.version, 3)
    dataset.update({"name": "'z'"}, where="id = 2")
    served.require(table, dataset.version, 3)
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": pa.array([3, 7], pa.int64()), "name": ["y", "g"]}))
    served.require(table, dataset.version, 4)
    dataset.add_columns({"more": "id * 2"})
    served.require(table, dataset.version, 4)
    dataset.optimize.compact_files()
    served.require(table, dataset.version, 4)
    dataset.create_scalar_index("id", "BTREE")
    served.require(table, dataset.version, 4)
    again = lance.dataset(namespace_client=served.namespace, table_id=table)
    assert again.version == dataset.version
    assert sorted(map(tuple, (row.values() for row in again.to_table().to_pylist()))) == [
        (2, "z", 4),
        (3, "y", 6),
        (4, "d", 8),
        (7, "g", 14),
    ]
    columns = served.catalog.load_table(tuple(table if table[1:] else ["default", *table])).schema().column_names
    assert columns == ["id", "name", "more"]
    first = lance.dataset(namespace_client=served.namespace, table_id=table, version=1)
    assert first.to_table().equals(ROWS)


def test_writers_beside_each_other(served: Served, name: str) -> None:
    write(served, served.root_table(name), ROWS, "create")

    def append(number: int) -> None:
        rows = pa.table({"id": pa.array([100 + number], pa.int64()), "name": ["x"]})
        write(served, served.root_table(name), rows, "append")

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(append, range(8)))
    dataset = lance.dataset(namespace_client=served.namespace, table_id=served.root_table(name))
    assert sorted(dataset.to_table()["id"].to_pylist()) == [1, 2, 3, 4, *range(100, 108)]
    served.require(served.root_table(name), 9, 12)


def test_lancedb(served: Served, table: list[str]) -> None:
    db = lancedb.connect_namespace("rest", {"uri": f"{served.server.url}/lance"})
    *path, name = table
    made = db.create_table(name, ROWS, namespace_path=path)
    made.add(MORE)
    assert made.count_rows() == 6
    made.delete("id = 1")
    made.update(where="id = 2", values={"name": "z"})
    assert db.list_tables(namespace_path=path).tables.count(name) == 1
    opened = db.open_table(name, namespace_path=path)
    assert opened.count_rows() == 5
    assert opened.search().where("id = 2").to_list() == [{"id": 2, "name": "z"}]
    served.require(table, opened.version, 5)
    assert db.create_table(name, MORE, namespace_path=path, mode="overwrite").count_rows() == 2
    served.require(table, opened.version + 1, 2)


def test_without_the_server_an_impl_table_keeps_its_versions(served: Served, name: str) -> None:
    """The files of the table are whole: they can be read past the server."""
    location = write(served, served.root_table(name), ROWS, "create").uri
    assert lance.dataset(location, storage_options=dict(served.options) or None).to_table().equals(ROWS)
