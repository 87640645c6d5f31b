"""A manifest that somebody damaged by hand: a clear error, and nothing is made over it."""

from pathlib import Path

import pytest

from contract_tests.directory.opened import Directory, declared, open_in
from irc_bridge.errors import BridgeError, Internal


def cut(manifest: Path) -> None:
    newest = min(manifest.glob("_versions/*.manifest"))
    newest.write_bytes(newest.read_bytes()[:40])


def without_data(manifest: Path) -> None:
    for file in manifest.glob("data/*"):
        file.unlink()


@pytest.mark.parametrize("mode", ["compat", "v2"])
@pytest.mark.parametrize("damage", [cut, without_data])
def test_the_error_names_the_folder(root: Path, mode: str, damage: object) -> None:
    open_in(mode, root).create_namespace(("a",), {})
    assert callable(damage)
    damage(root / "__manifest")
    catalog = open_in(mode, root)
    files = sorted(root.rglob("*"))
    for ask in (list_namespaces, change, make_a_table):
        with pytest.raises(Internal) as raised:
            ask(catalog)
        assert f"file://{root}/__manifest" in raised.value.message
        assert "restore its files" in raised.value.message
        assert "Only this table" not in raised.value.message
    assert sorted(root.rglob("*")) == files


def list_namespaces(catalog: Directory) -> object:
    return catalog.list_namespaces(())


def change(catalog: Directory) -> None:
    catalog.create_namespace(("b",), {})


def make_a_table(catalog: Directory) -> object:
    return catalog.create_table(("t",), declared())


@pytest.mark.parametrize("mode", ["compat", "v2"])
def test_a_row_that_leads_out_of_the_root_breaks_its_own_table_only(root: Path, mode: str) -> None:
    import lance
    import pyarrow as pa

    open_in(mode, root).create_namespace(("a",), {})
    manifest = lance.dataset(root / "__manifest")
    rows = [
        {"object_id": "a$out", "object_type": "table", "location": "../x", "metadata": None, "base_objects": None}
    ]
    lance.write_dataset(pa.Table.from_pylist(rows, schema=manifest.schema), manifest.uri, mode="append")
    catalog = open_in(mode, root)
    assert catalog.list_tables(("a",)).items == ("out",)
    with pytest.raises(BridgeError) as raised:
        catalog.load_table(("a", "out"))
    assert "a$out names no folder inside the root: ../x" in raised.value.message
    with pytest.raises(BridgeError):
        catalog.drop_table(("a", "out"))
    catalog.create_table(("a", "in"), declared())
    assert catalog.list_tables(("a",)).items == ("in", "out")
