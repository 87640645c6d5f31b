"""An import and the catalog that decides about it."""

from pathlib import Path
from typing import Any

import lance
import pytest

from contract_tests.pipeline.conftest import Import
from contract_tests.pipeline.tables import T, at, contents, files, rows
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.catalog.models import NewTable, TableInfo
from irc_bridge.catalog.ports import CanChangeNamespaces, CanCreateTables
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.options import settings_of
from irc_bridge.cli.tables import named_table
from irc_bridge.errors import (
    BridgeError,
    CommitFailed,
    InvalidInput,
    NamespaceNotFound,
    PermissionDenied,
    TableAlreadyExists,
)
from irc_bridge.lance_store import imports
from irc_bridge.pipeline import importing, upserts

pytestmark = LEAVES_SOCKETS


class TestCatalogs:
    def test_a_table_that_the_catalog_manages(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        (tmp_path / "irc-bridge.toml").write_text(
            'warehouses.main.root = "tables"\nwarehouses.main.table_version_management = true\n'
            'warehouses.main.default_managed_by = "impl"\n'
        )
        for number in range(2):
            run_import(f"SELECT {number}L AS id", T, "--format", "sql")
        run_import("SELECT 1L AS id", T, "--format", "sql", "--mode", "upsert", "--key", "id")
        catalog, table = named_table(open_warehouses(settings_of(None)), T)
        info = catalog.catalog.load_table(table)
        assert isinstance(info, TableInfo)
        assert info.properties["managed_by"] == "impl"
        assert [(each.version, each.operation) for each in info.versions] == [
            (1, "Overwrite"),
            (2, "Append"),
            (3, "Update"),
        ]
        assert contents(lance.dataset(info.location)) == [{"id": 0}, {"id": 1}]

    def test_namespaces_and_names_with_dots(self, run_import: Import, root: Path) -> None:
        warehouse, _ = named_table(open_warehouses(settings_of(None)), T)
        catalog = warehouse.catalog
        assert isinstance(catalog, CanChangeNamespaces)
        with pytest.raises(NamespaceNotFound):
            run_import("SELECT 1L AS id", "main.a.b.t", "--format", "sql")
        catalog.create_namespace(("a",), {})
        catalog.create_namespace(("a", "b.c"), {})
        run_import("SELECT 1L AS id", "main.a.`b.c`.t", "--format", "sql")
        info = catalog.load_table(("a", "b.c", "t"))
        assert isinstance(info, TableInfo)
        assert contents(lance.dataset(info.location)) == [{"id": 1}]

    def test_names_that_are_none(self, run_import: Import) -> None:
        for name in ("t", "main.t", "main..t", "main.default.t.", "main.`a.b", "main.default.x.t"):
            with pytest.raises(InvalidInput, match=r"main|t is not"):
                run_import("SELECT 1L AS id", name, "--format", "sql")
        with pytest.raises(BridgeError, match="Known warehouses: main"):
            run_import("SELECT 1L AS id", "other.default.t", "--format", "sql")

    def test_a_declared_table_gets_its_first_version(self, run_import: Import, root: Path) -> None:
        warehouse, table = named_table(open_warehouses(settings_of(None)), T)
        catalog = warehouse.catalog
        assert isinstance(catalog, CanCreateTables)
        catalog.create_table(table, NewTable({"color": "blue"}))
        assert run_import("SELECT 1L AS id", T, "--format", "sql")["version"] == 1
        info = catalog.load_table(table)
        assert isinstance(info, TableInfo)
        assert info.properties["color"] == "blue"
        assert contents(at(root)) == [{"id": 1}]

    def test_a_warehouse_that_is_read_only(self, run_import: Import, root: Path, tmp_path: Path) -> None:
        (tmp_path / "irc-bridge.toml").write_text(
            'warehouses.main.root = "tables"\nwarehouses.main.read_only = true\n'
        )
        with pytest.raises(PermissionDenied, match="main is read-only"):
            run_import("SELECT 1L AS id", T, "--format", "sql")
        assert list(root.iterdir()) == []


class TestOthersWriteMeanwhile:
    @pytest.fixture
    def meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """Has something happen after the executors are through with a step, the first times."""

        def happens(module: Any, step: str, *happenings: Any) -> None:
            real, left = getattr(module, step), list(happenings)

            def then(*arguments: Any) -> Any:
                done = real(*arguments)
                if left:
                    left.pop(0)()
                return done

            monkeypatch.setattr(module, step, then)

        return happens

    def append(self, root: Path, *ids: int) -> None:
        lance.write_dataset(rows(ids, "other"), str(root / "t.lance"), mode="append")

    @pytest.mark.parametrize(("mode", "left"), [("append", 8), ("overwrite", 3)])
    def test_appended_rows(self, run_import: Import, root: Path, meanwhile: Any, mode: str, left: int) -> None:
        self.append(root, 1, 2, 3)
        meanwhile(importing, "write", lambda: self.append(root, 4, 5))
        source = "SELECT id, 'mine' AS name FROM range(10, 13)"
        report = run_import(source, T, "--format", "sql", "--mode", mode)
        assert report["version"] == at(root).version == 3
        assert at(root, version=2).count_rows() == 5
        assert at(root).count_rows() == left

    def test_an_upsert_looks_again(self, run_import: Import, root: Path, meanwhile: Any) -> None:
        self.append(root, 1, 2, 3)
        meanwhile(
            upserts,
            "replace",
            lambda: self.append(root, 10, 50),
            lambda: at(root).optimize.compact_files(),
            lambda: at(root).delete("id = 2"),
        )
        source = "SELECT id, 'mine' AS name FROM VALUES (1L), (10L), (11L) AS t(id)"
        report = run_import(source, T, "--format", "sql", "--mode", "upsert", "--key", "id")
        assert report["replaced"] == 2
        assert [(row["id"], row["name"]) for row in contents(at(root))] == [
            (1, "mine"),
            (3, "other3"),
            (10, "mine"),
            (11, "mine"),
            (50, "other50"),
        ]
        every = [each["version"] for each in at(root).versions()]
        named = {each.deletion_file() for number in every for each in at(root, number).get_fragments()} - {None}
        assert {f"_deletions/{each.name}" for each in (root / "t.lance/_deletions").iterdir()} == named

    def test_a_changed_schema(self, run_import: Import, root: Path, meanwhile: Any) -> None:
        self.append(root, 1)
        before = len(list((root / "t.lance/data").iterdir()))
        meanwhile(importing, "write", lambda: at(root).drop_columns(["name"]))
        with pytest.raises(CommitFailed, match="columns of t were changed meanwhile"):
            run_import("SELECT 2L AS id, 'x' AS name", T, "--format", "sql")
        assert at(root).count_rows() == 1
        assert len(list((root / "t.lance/data").iterdir())) == before

    def test_a_table_of_the_name_is_made(self, run_import: Import, root: Path, meanwhile: Any) -> None:
        meanwhile(importing, "write", lambda: self.append(root, 1))
        with pytest.raises((CommitFailed, TableAlreadyExists)):
            run_import("SELECT 2L AS id, 'x' AS name", T, "--format", "sql")
        assert contents(at(root)) == [{"id": 1, "name": "other1"}]
        assert len(list((root / "t.lance/data").iterdir())) == 1


def test_what_fails_while_a_table_is_made_leaves_no_name(
    run_import: Import, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise InvalidInput("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(imports.Import, "stage_all", fails)
        with pytest.raises(InvalidInput, match="disk is full"):
            run_import("SELECT 2L AS id, 'x' AS name", T, "--format", "sql")
    warehouse, table = named_table(open_warehouses(settings_of(None)), T)
    assert not warehouse.catalog.table_exists(table)
    assert not (root / "t.lance").exists() or files(root) == set()
    run_import("SELECT 2L AS id, 'x' AS name", T, "--format", "sql")
    assert contents(at(root)) == [{"id": 2, "name": "x"}]
