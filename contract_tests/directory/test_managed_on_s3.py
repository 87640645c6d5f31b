"""Version rows on a real S3 server."""

from concurrent.futures import ThreadPoolExecutor

import lance
import pytest

from contract_tests.directory.managed import MANAGED, append_managed, open_managed
from contract_tests.directory.opened import (
    Directory,
    load,
    names,
    new_table,
    open_in,
    rows,
    set_properties,
    versions,
)
from contract_tests.directory.staging import stage
from contract_tests.worlds.s3 import S3
from irc_bridge.catalog.models import Levels, VersionRange
from irc_bridge.errors import TableVersionAlreadyExists

T: Levels = ("t",)
U: Levels = ("u",)


@pytest.fixture
def bucket(s3: S3) -> str:
    return s3.bucket("managed") + "/below/a b"


def version_ids(s3: S3, bucket: str) -> set[str]:
    table = lance.dataset(f"{bucket}/__manifest", storage_options=dict(s3.options)).to_table()
    return {row["object_id"] for row in table.to_pylist() if row["object_type"] == "table_version"}


def ids(s3: S3, location: str) -> list[int]:
    found: list[int] = lance.dataset(location, storage_options=dict(s3.options)).to_table()["id"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("mode", MANAGED)
def test_a_life(s3: S3, bucket: str, mode: str) -> None:
    catalog = open_managed(mode, bucket, **s3.options)
    table = catalog.create_table(T, new_table(managed_by="impl"))
    asked = [stage(table.location, number, options=s3.options) for number in (1, 2)]
    [made] = catalog.create_table_versions([asked[0].entry(T)])
    assert catalog.create_table_versions([asked[0].entry(T)]) == (made,)
    with pytest.raises(TableVersionAlreadyExists):
        catalog.create_table_versions([asked[1].entry(T)])
    set_properties(catalog, T, {"owner": "ann"})
    append_managed(catalog, T, rows(3), s3.options)
    other = open_in(mode, bucket, **s3.options)
    assert versions(load(other, T)) == [1, 2, 3, 4]
    assert version_ids(s3, bucket) == {f"t${number}" for number in range(1, 5)}
    other.rename_table(T, U)
    assert (names(catalog), versions(load(catalog, U))) == (["u"], [1, 2, 3, 4])
    assert ids(s3, load(catalog, U).location) == [1, 3]
    assert other.delete_table_versions(U, [VersionRange(0, 3)], ignore_missing=False) == 2
    assert version_ids(s3, bucket) == {"u$3", "u$4"}
    other.drop_table(U)
    assert version_ids(s3, bucket) == set()


def test_many_writers(s3: S3, bucket: str) -> None:
    catalog = open_managed("v2", bucket, **s3.options)
    location = catalog.create_table(T, new_table(managed_by="impl")).location

    def write(who: int) -> None:
        mine: Directory = open_in("v2", bucket, **s3.options)
        for number in range(3):
            append_managed(mine, T, rows(who * 10 + number), s3.options)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert versions(load(catalog, T)) == list(range(1, 14))
    assert version_ids(s3, bucket) == {f"t${number}" for number in range(1, 14)}
    assert ids(s3, location) == [who * 10 + number for who in range(4) for number in range(3)]
