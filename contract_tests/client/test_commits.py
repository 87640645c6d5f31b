"""What becomes of commits that race, that come late, that are repeated, or whose answer is lost."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import lance
import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import ON_DISK, ONLY_PLAIN, Catalog, rows
from contract_tests.client.proxy import Fault, Proxy, once, proxied
from contract_tests.directory.staging import Request, stage
from irc_bridge.client import IcebergRestNamespace

WRITERS, APPENDS = 8, 4
APPLIED = [Fault.UNANSWERED, Fault.HALF, Fault.SILENT_500, Fault.SILENT_503]
NOT_APPLIED = [Fault.LOST, Fault.BUSY]


def write(namespace: IcebergRestNamespace, table: list[str], mode: str, *ids: int) -> Any:
    return lance.write_dataset(rows(*ids), namespace_client=namespace, table_id=table, mode=mode)


def ids(catalog: Catalog, table: list[str]) -> list[int]:
    dataset = lance.dataset(namespace_client=catalog.connect(), table_id=table)
    return sorted(dataset.to_table(columns=["id"])["id"].to_pylist())


def numbers(catalog: Catalog, table: list[str]) -> list[int]:
    listed = catalog.connect().list_table_versions(ln.ListTableVersionsRequest(id=table))
    return [each.version for each in listed.versions]


def request(table: list[str], staged: Request, **changed: Any) -> dict[str, Any]:
    asked = {"version": staged.version, "manifest_path": staged.manifest_path, "e_tag": staged.e_tag}
    return {"id": table, "naming_scheme": staged.naming_scheme, **asked, **changed}


def test_threads_lose_no_row_and_leave_no_gap(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    write(namespace, table, "create", -1)

    def append(who: int) -> None:
        for each in range(APPENDS):
            write(namespace, table, "append", who * APPENDS + each)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(append, range(WRITERS)))
    assert ids(catalog, table) == list(range(-1, WRITERS * APPENDS))
    assert numbers(catalog, table) == list(range(1, WRITERS * APPENDS + 2))
    assert catalog.version(table) == WRITERS * APPENDS + 1


def test_a_held_table_that_others_changed_is_written_on_top(catalog: Catalog, table: list[str]) -> None:
    held = write(catalog.connect(), table, "create", 0)
    write(catalog.connect(), table, "append", 1)
    held.insert(rows(2))
    assert (ids(catalog, table), catalog.version(table)) == ([0, 1, 2], 3)


@ON_DISK
def test_a_stale_commit_is_refused_with_14(catalog: Catalog, table: list[str]) -> None:
    namespace = catalog.connect()
    location = write(namespace, table, "create", 0).uri
    stale = stage(location, 9)
    write(namespace, table, "append", 1)
    with pytest.raises(ln.errors.ConcurrentModificationError) as refused:
        namespace.create_table_version(request(table, stale))
    assert refused.value.code == 14
    assert (ids(catalog, table), catalog.version(table)) == ([0, 1], 2)


@ON_DISK
@pytest.mark.parametrize("version", [1, 3])
def test_a_commit_of_another_version_than_the_manifests_is_refused(
    catalog: Catalog, table: list[str], version: int
) -> None:
    namespace = catalog.connect()
    staged = stage(write(namespace, table, "create", 0).uri, 9)
    with pytest.raises(ln.errors.InvalidInputError, match="one of version 2"):
        namespace.create_table_version(request(table, staged, version=version))
    assert catalog.version(table) == 1


@ON_DISK
def test_two_that_start_from_one_version_make_one(catalog: Catalog, table: list[str]) -> None:
    location = write(catalog.connect(), table, "create", 0).uri
    first, second = stage(location, 1), stage(location, 2)
    late = catalog.connect()
    late.describe_table(ln.DescribeTableRequest(id=table))  # so that it believes version 1 to be current
    catalog.connect().create_table_version(request(table, first))
    with pytest.raises(ln.errors.ConcurrentModificationError):
        late.create_table_version(request(table, second))
    assert (ids(catalog, table), catalog.version(table)) == ([0, 1], 2)


@ON_DISK
@pytest.mark.parametrize("later", [0, 2], ids=["at once", "after others"])
def test_a_commit_that_is_in_succeeds_again(catalog: Catalog, table: list[str], later: int) -> None:
    location = write(catalog.connect(), table, "create", 0).uri
    asked = request(table, stage(location, 1))
    made = catalog.connect().create_table_version(asked).version
    for each in range(later):
        write(catalog.connect(), table, "append", 10 + each)
    for repeating in (catalog.connect(), catalog.connect()):
        again = repeating.create_table_version(asked).version
        assert again and made and (again.version, again.manifest_path) == (2, made.manifest_path)
    assert numbers(catalog, table) == list(range(1, 3 + later))


@ON_DISK
@pytest.mark.parametrize("fault", APPLIED, ids=lambda fault: fault.name)
def test_a_commit_whose_answer_is_lost_is_in_once(catalog: Catalog, table: list[str], fault: Fault) -> None:
    write(catalog.connect(), table, "create", 0)
    with proxied(catalog.url, once(fault)) as proxy:
        written = write(through(proxy, catalog), table, "append", 1)
    assert (written.version, written.count_rows()) == (2, 2)
    assert len(proxy.commits) == 1
    assert (ids(catalog, table), catalog.version(table)) == ([0, 1], 2)


@ON_DISK
@pytest.mark.parametrize("fault", NOT_APPLIED, ids=lambda fault: fault.name)
def test_a_commit_that_was_lost_is_said_to_be_unknown(catalog: Catalog, table: list[str], fault: Fault) -> None:
    location = write(catalog.connect(), table, "create", 0).uri
    asked = request(table, stage(location, 1))
    with proxied(catalog.url, once(fault)) as proxy:
        namespace = through(proxy, catalog)
        with pytest.raises(ln.errors.InternalError, match=r"Whether it was done is not known"):
            namespace.create_table_version(asked)
        assert len(proxy.commits) == 1
        assert catalog.version(table) == 1
        namespace.create_table_version(asked)
    assert (ids(catalog, table), catalog.version(table)) == ([0, 1], 2)


@ON_DISK
def test_a_lost_commit_that_another_overtook_is_a_conflict(catalog: Catalog, table: list[str]) -> None:
    location = write(catalog.connect(), table, "create", 0).uri
    ours, theirs = stage(location, 1), stage(location, 2)
    meet = once(Fault.LOST)

    def overtaken(seen: Any) -> Fault | None:
        fault = meet(seen)
        if fault:
            catalog.connect().create_table_version(request(table, theirs))
        return fault

    with proxied(catalog.url, overtaken) as proxy, pytest.raises(ln.errors.ConcurrentModificationError):
        through(proxy, catalog).create_table_version(request(table, ours))
    assert ids(catalog, table) == [0, 2]


@ON_DISK
def test_a_server_that_is_not_there_changed_nothing(catalog: Catalog, table: list[str]) -> None:
    location = write(catalog.connect(), table, "create", 0).uri
    asked = request(table, stage(location, 1))
    with proxied(catalog.url) as proxy:
        namespace = through(proxy, catalog)
        namespace.describe_table(ln.DescribeTableRequest(id=table))
    with pytest.raises(ln.errors.ServiceUnavailableError, match="cannot be reached"):
        namespace.create_table_version(asked)
    assert catalog.version(table) == 1


@ON_DISK
def test_who_knows_the_table_commits_with_one_request(catalog: Catalog, table: list[str]) -> None:
    with proxied(catalog.url) as proxy:
        dataset = write(through(proxy, catalog), table, "create", 0)
        proxy.seen.clear()
        dataset.delete("id = 0")
    assert [each.method for each in proxy.seen] == ["POST"]
    [sent] = proxy.commits
    kinds = {each["type"]: each.get("snapshot-id") for each in sent.body["requirements"]}
    assert kinds == {"assert-table-uuid": None, "assert-ref-snapshot-id": 1}
    assert [each["action"] for each in sent.body["updates"]] == ["add-snapshot", "set-snapshot-ref"]


@ONLY_PLAIN
def test_a_version_that_the_catalog_never_saw_is_in_the_way(catalog: Catalog, table: list[str]) -> None:
    """Somebody writes past the catalog, to a server that cannot notice."""
    namespace = catalog.connect()
    location = write(namespace, table, "create", 0).uri
    staged = stage(location, 1)
    lance.write_dataset(rows(7), location, mode="append")
    with pytest.raises(ln.errors.InternalError, match="wrote past the catalog"):
        namespace.create_table_version(request(table, staged))
    assert (ids(catalog, table), catalog.version(table)) == ([0], 1)


@ON_DISK
@pytest.mark.parametrize("where", ["missing", "outside"])
def test_a_manifest_that_is_not_the_tables_own_is_refused(catalog: Catalog, table: list[str], where: str) -> None:
    namespace = catalog.connect()
    location = write(namespace, table, "create", 0).uri
    staged = stage(location, 1)
    path = staged.manifest_path + "0" if where == "missing" else "tmp/" + staged.manifest_path.rpartition("/")[2]
    with pytest.raises(ln.errors.InvalidInputError, match="staged manifest"):
        namespace.create_table_version(request(table, staged, manifest_path=path))
    assert catalog.version(table) == 1


def through(proxy: Proxy, catalog: Catalog) -> IcebergRestNamespace:
    return replace(catalog, url=proxy.url).connect()
