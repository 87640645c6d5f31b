"""Rows of the manifest that others wrote, and many at once."""

import time
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.managed import (
    MANAGED,
    ids_of,
    make,
    manifest,
    open_managed,
    staged,
    version_rows,
)
from contract_tests.directory.native import Native
from contract_tests.directory.opened import (
    append,
    load,
    new_table,
    open_in,
    rows,
    set_properties,
    versions,
)
from contract_tests.directory.test_old_manifests import PRIMARY_KEY, manifest_schema


@pytest.fixture(params=MANAGED)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestManifestRows:
    def write(self, root: Path, *more: pa.Field, key: dict[str, str] | None) -> None:
        lance.write_dataset(rows(1), root / "x_t")
        schema = manifest_schema(*more, key=key)
        row = {"object_id": "t", "object_type": "table", "location": "x_t", "metadata": '{"owner": "ann"}'}
        space = {"object_id": "ns", "object_type": "namespace"}
        extra = {"newer": "kept", "base_objects": ["some"]}
        data = pa.Table.from_pylist([row | extra, space | extra], schema=schema)
        lance.write_dataset(data, root / "__manifest", data_storage_version="2.0")

    def test_the_primary_key_is_added_at_the_first_change(self, root: Path, mode: str) -> None:
        self.write(root, key=None)
        catalog = open_in(mode, root)
        assert catalog.list_namespaces(()).items == ("ns",)
        assert not manifest(root).schema.field("object_id").metadata
        catalog.create_namespace(("other",), {})
        metadata = manifest(root).schema.field("object_id").metadata
        assert metadata == {key.encode(): value.encode() for key, value in PRIMARY_KEY.items()}
        Native(mode, root).create_namespace(("theirs",))
        assert catalog.list_namespaces(()).items == ("ns", "other", "theirs")

    def test_columns_of_newer_writers_keep_their_values(self, root: Path, mode: str) -> None:
        self.write(root, pa.field("newer", pa.string()), key=PRIMARY_KEY)
        catalog = open_in(mode, root)
        catalog.rename_table(("t",), ("ns", "u"))
        catalog.update_namespace_properties(("ns",), frozenset(), {"color": "red"})
        set_properties(catalog, ("ns", "u"), {"color": "red"})
        catalog.create_namespace(("other",), {})
        found = {row["object_id"]: row for row in manifest(root).to_table().to_pylist()}
        kept = {key: (row["newer"], row["base_objects"]) for key, row in found.items()}
        assert kept == {"ns$u": ("kept", ["some"]), "ns": ("kept", ["some"]), "other": (None, None)}

    def test_hundreds_of_version_rows_are_carried_at_once(self, root: Path) -> None:
        catalog = open_in("compat", root)
        info = catalog.create_table(("t",), new_table(managed_by="impl"))
        for number in range(299):
            append(info, number)
        catalog = open_managed("compat", root)
        assert len(catalog.list_table_versions(("t",)).items) == 300
        started = time.monotonic()
        catalog.rename_table(("t",), ("u",))
        seconds = time.monotonic() - started
        assert set(version_rows(root)) == ids_of("u", range(1, 301))
        assert versions(load(catalog, ("u",))) == list(range(1, 301))
        assert seconds < 5
        make(catalog, ("u",), 1)
        assert staged(load(catalog, ("u",))) == []
