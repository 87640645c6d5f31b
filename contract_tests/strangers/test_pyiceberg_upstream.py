"""pyiceberg on the Iceberg tables of other servers, through the bridge. It has to find what it finds straight."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from contract_tests.worlds.bridge import version_numbers
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import KEY, S3, SECRET, s3_server
from contract_tests.worlds.servers import nessie, reference_server
from contract_tests.worlds.upstream import bridge_over

REFERENCE, NESSIE = "reference", "nessie"
ONLY_REFERENCE = pytest.mark.parametrize("behind", [REFERENCE], indirect=True)
"""Nessie keeps no older versions, deletes no files, does not say what it offers, and wants a last-column-id with
every schema, which pyiceberg no longer sends."""
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)
SQL_FIELDS = [{"id": 1, "name": "one", "type": "int", "required": False}]


@dataclass(frozen=True)
class Behind:
    """A server with a bridge before it."""

    name: str
    url: str
    bridge: str
    files: Mapping[str, str] = field(default_factory=dict)
    """What pyiceberg needs to reach the files, and to use views where nobody says that there are any."""

    @property
    def straight(self) -> str:
        """What the paths below it begin with."""
        prefix = self.config(self.url)["defaults"].get("prefix")
        return f"{self.url}/v1/{prefix}" if prefix else f"{self.url}/v1"

    def connect(self, url: str, **properties: str) -> RestCatalog:
        return RestCatalog("catalog", uri=url, **self.files, **properties)

    def config(self, url: str, **query: str) -> dict[str, Any]:
        answer = requests.get(f"{url}/v1/config", params=query, timeout=60)
        answer.raise_for_status()
        said: dict[str, Any] = answer.json()
        return said


@pytest.fixture(scope="module", params=[REFERENCE, NESSIE])
def behind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp(f"pyiceberg-{request.param}")
    with ExitStack() as stack:
        try:
            if request.param == REFERENCE:
                url, files = stack.enter_context(reference_server(made(folder / "behind"))), {}
            else:
                s3 = stack.enter_context(s3_server(made(folder / "buckets"), keep_alive=False))
                url, files = stack.enter_context(nessie(s3)), reading(s3)
        except CannotRun as reason:
            pytest.skip(f"{request.param}: {reason}")
        bridge = stack.enter_context(bridge_over(url, folder / "bridge", 'purge_after = "0s"\n'))
        yield Behind(request.param, url, bridge.url, files)


def reading(s3: S3) -> dict[str, str]:
    place = {"s3.endpoint": s3.endpoint, "s3.region": "us-east-1"}
    return {**place, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET, "view-endpoints-supported": "true"}


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.fixture
def catalog(behind: Behind) -> Iterator[RestCatalog]:
    catalog = behind.connect(behind.bridge, warehouse="main")
    yield catalog
    catalog.close()


@pytest.fixture
def straight(behind: Behind) -> Iterator[RestCatalog]:
    catalog = behind.connect(behind.url)
    yield catalog
    catalog.close()


@pytest.fixture
def namespace(catalog: RestCatalog, name: str) -> str:
    catalog.create_namespace(name)
    return name


def batch(*ids: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), pa.array([f"name {i}" for i in ids])], names=["id", "name"])


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


class TestConfig:
    def test_the_prefix_is_the_bridges_own(self, behind: Behind) -> None:
        said = behind.config(behind.bridge, warehouse="main")
        assert said["defaults"]["prefix"] == said["overrides"]["prefix"] == "main"

    def test_the_rest_is_the_servers_and_leads_nobody_past_the_bridge(self, behind: Behind) -> None:
        theirs, ours = behind.config(behind.url), behind.config(behind.bridge, warehouse="main")
        address = urlsplit(behind.url).netloc
        for which in ("defaults", "overrides"):
            said = {name: value for name, value in ours[which].items() if name != "prefix"}
            assert said.items() <= theirs[which].items()
            assert {"uri", "warehouse"}.isdisjoint(said)
            left_out = theirs[which].keys() - said.keys() - {"prefix", "uri", "warehouse"}
            assert all(address in theirs[which][name] for name in left_out), left_out

    @ONLY_REFERENCE
    def test_what_it_offers_is_what_the_server_offers(self, behind: Behind) -> None:
        theirs = set(behind.config(behind.url)["endpoints"])
        ours = set(behind.config(behind.bridge, warehouse="main")["endpoints"])
        assert len(theirs) > 20
        assert theirs <= ours
        added = {each.rpartition("/")[2] for each in ours - theirs}
        assert added <= {"plan", "tasks", "credentials", "metrics", "register", "commit", "rename"}

    def test_clients_stay_with_the_bridge(self, behind: Behind, catalog: RestCatalog) -> None:
        assert catalog.uri == behind.bridge


class TestNamespaces:
    def test_all_of_it(self, catalog: RestCatalog, straight: RestCatalog, name: str) -> None:
        child = (name, "a b")
        catalog.create_namespace(name, {"owner": "me"})
        catalog.create_namespace(child)
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(name)
        assert (name,) in catalog.list_namespaces()
        assert catalog.list_namespaces(name) == straight.list_namespaces(name) == [child]
        assert catalog.load_namespace_properties(name)["owner"] == "me"
        catalog.update_namespace_properties(name, removals={"owner"}, updates={"new": "1"})
        assert catalog.load_namespace_properties(name) == straight.load_namespace_properties(name)
        catalog.drop_namespace(child)
        catalog.drop_namespace(name)
        assert not straight.namespace_exists(name)
        with pytest.raises(NoSuchNamespaceError):
            catalog.load_namespace_properties(name)

    def test_one_with_a_table_stays(self, catalog: RestCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "t"), SCHEMA)
        with pytest.raises(NamespaceNotEmptyError):
            catalog.drop_namespace(namespace)


class TestTables:
    def test_rows_are_written_and_read(self, catalog: RestCatalog, straight: RestCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA, properties={"color": "blue"})
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1, 2, 3))
        table.append(batch(4))
        table.delete("id = 2")
        table.overwrite(batch(40), overwrite_filter="id = 4")
        assert ids(catalog.load_table((namespace, "t"))) == [1, 3, 40]
        assert ids(catalog.load_table((namespace, "t")), row_filter="id > 1", limit=10) == [3, 40]
        assert straight.load_table((namespace, "t")).metadata == catalog.load_table((namespace, "t")).metadata
        assert ids(straight.load_table((namespace, "t"))) == [1, 3, 40]

    @ONLY_REFERENCE
    def test_older_versions(self, catalog: RestCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1))
        table.append(batch(2))
        first, second = version_numbers(table.snapshots())
        loaded = catalog.load_table((namespace, "t"))
        assert ids(loaded, snapshot_id=first) == [1]
        assert ids(loaded, snapshot_id=second) == [1, 2]
        loaded.manage_snapshots().create_tag(first, "first").commit()
        assert catalog.load_table((namespace, "t")).refs()["first"].snapshot_id == first

    @ONLY_REFERENCE
    def test_the_schema_evolves(self, catalog: RestCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1))
        with table.update_schema() as update:
            update.add_column("score", DoubleType(), doc="of the game")
            update.rename_column("name", "called")
        loaded = catalog.load_table((namespace, "t"))
        assert [each.name for each in loaded.schema().fields] == ["id", "called", "score"]
        assert loaded.scan().to_arrow().to_pylist() == [{"id": 1, "called": "name 1", "score": None}]

    def test_partitions(self, catalog: RestCatalog, namespace: str) -> None:
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id"))
        table = catalog.create_table((namespace, "t"), SCHEMA, partition_spec=spec)
        table.append(batch(1, 2, 3))
        assert ids(catalog.load_table((namespace, "t")), row_filter="id = 2") == [2]
        assert catalog.load_table((namespace, "t")).spec() == table.spec()

    @ONLY_REFERENCE
    def test_who_changes_an_older_schema_is_refused(self, catalog: RestCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "t"), SCHEMA).append(batch(1))
        early, late = catalog.load_table((namespace, "t")), catalog.load_table((namespace, "t"))
        with early.update_schema() as update:
            update.add_column("early", LongType())
        with pytest.raises(CommitFailedException), late.update_schema() as update:
            update.add_column("late", LongType())
        loaded = catalog.load_table((namespace, "t"))
        assert [each.name for each in loaded.schema().fields] == ["id", "name", "early"]
        assert ids(loaded) == [1]

    @ONLY_REFERENCE
    def test_who_appends_to_an_older_version_tries_again(self, catalog: RestCatalog, namespace: str) -> None:
        catalog.create_table((namespace, "t"), SCHEMA).append(batch(1))
        early, late = catalog.load_table((namespace, "t")), catalog.load_table((namespace, "t"))
        early.append(batch(2))
        late.append(batch(3))
        assert ids(catalog.load_table((namespace, "t"))) == [1, 2, 3]

    def test_a_refused_commit_is_refused_in_the_servers_words(
        self, behind: Behind, catalog: RestCatalog, namespace: str
    ) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1))
        wanted = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
        change = {"requirements": [wanted], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
        theirs, ours = (
            requests.post(f"{base}/namespaces/{namespace}/tables/t", json=change, timeout=60)
            for base in (behind.straight, f"{behind.bridge}/v1/main")
        )
        assert theirs.status_code == ours.status_code == 409
        assert theirs.content == ours.content
        assert catalog.load_table((namespace, "t")).metadata == table.metadata

    def test_a_commit_on_a_table_that_was_made_again(self, catalog: RestCatalog, namespace: str) -> None:
        old = catalog.create_table((namespace, "t"), SCHEMA)
        catalog.drop_table((namespace, "t"))
        catalog.create_table((namespace, "t"), SCHEMA)
        with pytest.raises(CommitFailedException):
            old.transaction().set_properties({"a": "1"}).commit_transaction()

    @ONLY_REFERENCE
    def test_transactions(self, catalog: RestCatalog, straight: RestCatalog, namespace: str) -> None:
        with catalog.create_table_transaction((namespace, "t"), SCHEMA) as transaction:
            transaction.set_properties({"color": "blue"})
            assert not catalog.table_exists((namespace, "t"))
        with catalog.load_table((namespace, "t")).transaction() as transaction:
            transaction.append(batch(1, 2))
            transaction.set_properties({"size": "2"})
        loaded = straight.load_table((namespace, "t"))
        assert ids(loaded) == [1, 2]
        assert (loaded.properties["color"], loaded.properties["size"]) == ("blue", "2")

    def test_rename(self, catalog: RestCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1))
        renamed = catalog.rename_table((namespace, "t"), (namespace, "new"))
        assert renamed.metadata.table_uuid == table.metadata.table_uuid
        assert catalog.list_tables(namespace) == [(namespace, "new")]
        assert ids(renamed) == [1]
        with pytest.raises(NoSuchTableError):
            catalog.load_table((namespace, "t"))

    @ONLY_REFERENCE
    def test_register(self, catalog: RestCatalog, namespace: str) -> None:
        table = catalog.create_table((namespace, "t"), SCHEMA)
        table.append(batch(1))
        registered = catalog.register_table((namespace, "again"), table.metadata_location)
        assert registered.metadata.table_uuid == table.metadata.table_uuid
        assert ids(registered) == [1]

    @ONLY_REFERENCE
    def test_drop_with_and_without_purge(self, catalog: RestCatalog, namespace: str) -> None:
        kept, purged = (catalog.create_table((namespace, each), SCHEMA) for each in ("kept", "purged"))
        for table in (kept, purged):
            table.append(batch(1))
        catalog.drop_table((namespace, "kept"))
        catalog.purge_table((namespace, "purged"))
        assert catalog.list_tables(namespace) == []
        assert path_of(kept.metadata_location).exists()
        assert not path_of(purged.metadata_location).exists()
        with pytest.raises(NoSuchTableError):
            catalog.drop_table((namespace, "kept"))

    def test_lists(self, catalog: RestCatalog, straight: RestCatalog, namespace: str) -> None:
        for number in range(3):
            catalog.create_table((namespace, f"t{number}"), SCHEMA)
        assert sorted(catalog.list_tables(namespace)) == [(namespace, f"t{number}") for number in range(3)]
        assert catalog.list_tables(namespace) == straight.list_tables(namespace)
        assert catalog.list_views(namespace) == straight.list_views(namespace) == []

    @ONLY_REFERENCE
    def test_a_list_of_nothing(self, catalog: RestCatalog, name: str) -> None:
        with pytest.raises(NoSuchNamespaceError):
            catalog.list_tables(f"no_{name}")

    def test_views(self, behind: Behind, catalog: RestCatalog, namespace: str) -> None:
        view = {
            "name": "v",
            "schema": {"type": "struct", "schema-id": 0, "fields": SQL_FIELDS},
            "view-version": {
                "version-id": 1,
                "schema-id": 0,
                "timestamp-ms": 1700000000000,
                "summary": {},
                "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
                "default-namespace": [namespace],
            },
            "properties": {},
        }
        views = f"{behind.bridge}/v1/main/namespaces/{namespace}/views"
        created = requests.post(views, json=view, timeout=60)
        assert created.status_code == 200, created.text
        assert catalog.list_views(namespace) == [(namespace, "v")]
        assert catalog.view_exists((namespace, "v"))
        catalog.drop_view((namespace, "v"))
        assert catalog.list_views(namespace) == []


@ONLY_REFERENCE
class TestLanceTablesBeside:
    LANCE = {"table_type": "lance", "managed_by": "impl"}  # noqa: RUF012

    def test_from_birth_to_death(self, catalog: RestCatalog, straight: RestCatalog, namespace: str) -> None:
        identifier = (namespace, "lance")
        catalog.create_table((namespace, "iceberg"), SCHEMA).append(batch(7))
        created = catalog.create_table(identifier, SCHEMA, properties={**self.LANCE, "color": "blue"})
        assert sorted(catalog.list_tables(namespace)) == [(namespace, "iceberg"), identifier]
        assert straight.load_table(identifier).properties["table_type"] == "lance"
        with created.update_schema() as update:
            update.add_column("score", DoubleType())
        created.transaction().set_properties({"color": "red"}).commit_transaction()
        loaded = catalog.load_table(identifier)
        dataset = lance.dataset(loaded.location())
        assert [field.name for field in loaded.schema().fields] == dataset.schema.names == ["id", "name", "score"]
        assert loaded.properties["color"] == "red"
        current = loaded.current_snapshot()
        assert current and current.snapshot_id == dataset.version
        renamed = catalog.rename_table(identifier, (namespace, "renamed"))
        assert renamed.metadata.table_uuid == created.metadata.table_uuid
        catalog.purge_table((namespace, "renamed"))
        assert not path_of(loaded.location()).exists()
        assert catalog.list_tables(namespace) == [(namespace, "iceberg")]
        assert ids(catalog.load_table((namespace, "iceberg"))) == [7]

    def test_rows_never_scan_as_empty(self, catalog: RestCatalog, namespace: str) -> None:
        created = catalog.create_table((namespace, "lance"), SCHEMA, properties={"table_type": "lance"})
        lance.write_dataset(batch(1), created.location(), mode="append")
        with pytest.raises((ValueError, OSError), match="has-no-Parquet-copy"):
            catalog.load_table((namespace, "lance")).scan().to_arrow()


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def test_answers_are_the_servers_own_bytes(behind: Behind, catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), SCHEMA).append(batch(1))
    for path in (f"namespaces/{namespace}/tables/t", f"namespaces/{namespace}/tables", f"namespaces/{namespace}"):
        for accept in ("identity", "gzip"):
            # Nessie signs what it vends, each second anew
            for _ in range(20):
                theirs, ours, again = (
                    requests.get(f"{base}/{path}", headers={"Accept-Encoding": accept}, timeout=60)
                    for base in (behind.straight, f"{behind.bridge}/v1/main", behind.straight)
                )
                if theirs.content == again.content:
                    break
            assert ours.status_code == theirs.status_code == 200
            assert ours.content == theirs.content
            for header in ("content-type", "content-encoding", "etag", "cache-control"):
                assert ours.headers.get(header) == theirs.headers.get(header), header
