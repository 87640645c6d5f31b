"""The version operations of seed 001, against what pylance writes and reads."""

import os
import shutil
import time
from pathlib import Path

import lance
import pytest

from contract_tests.directory.opened import (
    VERSIONED,
    Directory,
    append,
    declared,
    load,
    new_table,
    open_in,
    path_of,
    versions,
)
from contract_tests.directory.staging import Request, stage, stage_first
from contract_tests.directory.test_permissions import as_nobody
from irc_bridge.catalog.models import NamingScheme, NewVersion, TableInfo, VersionRange, VersionRecord
from irc_bridge.errors import (
    ConcurrentModification,
    InvalidInput,
    TableNotFound,
    TableVersionAlreadyExists,
)

T, U = ("t",), ("u",)


pytestmark = pytest.mark.parametrize("mode", VERSIONED)


def manifests(info: TableInfo) -> list[str]:
    return sorted(path.name for path in Path(path_of(info), "_versions").iterdir() if "manifest" in path.name)


def v2(version: int) -> str:
    return f"{2**64 - 1 - version:020}.manifest"


def create(catalog: Directory, entry: NewVersion) -> VersionRecord:
    [made] = catalog.create_table_versions([entry])
    return made


class TestCreate:
    def test_the_staged_manifest_is_the_next_version(self, catalog: Directory, table: TableInfo) -> None:
        asked = stage(table.location, 1, 2)
        content = Path("/", asked.manifest_path).read_bytes()
        made = create(catalog, asked.entry(T))
        final = Path(path_of(table), "_versions", v2(2))
        assert made.manifest_path == final.as_uri()
        assert (made.version, made.manifest_size, made.e_tag) == (2, asked.manifest_size, asked.e_tag)
        assert abs(made.timestamp_ms - time.time() * 1000) < 60_000
        assert final.read_bytes() == content
        assert manifests(table) == [v2(2), v2(1)]
        assert lance.dataset(table.location).to_table()["id"].to_pylist() == [1, 2]
        assert versions(load(catalog, T)) == [1, 2]

    @pytest.mark.parametrize("form", ["uri", "absolute", "from the system's root", "in the table"])
    @pytest.mark.parametrize("name", ["t", "a b", "50%25", "é", "a#b?c"])
    def test_every_form_of_path(self, catalog: Directory, name: str, form: str) -> None:
        info = catalog.create_table((name,), new_table())
        asked = stage(info.location, 1)
        path = Path("/", asked.manifest_path)
        forms = {
            "uri": f"{info.location}/_versions/{path.name}",
            "absolute": str(path),
            "from the system's root": asked.manifest_path,
            "in the table": f"_versions/{path.name}",
        }
        create(catalog, asked.entry((name,), staged_path=forms[form]))
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [1]
        assert not path.exists()

    @pytest.mark.parametrize("place", ["_staging", "_versions/later"])
    def test_a_manifest_staged_elsewhere_in_the_table(
        self, catalog: Directory, table: TableInfo, place: str
    ) -> None:
        asked = stage(table.location, 1)
        path = Path("/", asked.manifest_path)
        folder = Path(path_of(table), place)
        folder.mkdir()
        moved = path.rename(folder / path.name)
        create(catalog, asked.entry(T, staged_path=str(moved)))
        assert versions(load(catalog, T)) == [1, 2]
        assert not moved.exists()

    @pytest.mark.parametrize(
        "path", ["other.lance/_versions/x.manifest-1", "t.lance/../u.lance/_versions/x", "t.lance", "../x", ""]
    )
    def test_a_path_outside_the_table(self, catalog: Directory, table: TableInfo, path: str) -> None:
        asked = stage(table.location, 1)
        for form in (str(Path(path_of(table)).parent) + f"/{path}", path, f"file:///{path}", f"s3://b/{path}"):
            with pytest.raises(InvalidInput, match="does not lie inside") as refused:
                create(catalog, asked.entry(T, staged_path=form))
            assert form in refused.value.message
        with pytest.raises(InvalidInput, match="does not lie inside"):
            create(catalog, asked.entry(T, staged_path=f"_versions/../../{path}"))
        assert manifests(table)[-1] == v2(1)

    @pytest.mark.parametrize("name", [v2(1), v2(2), "1.manifest", "2.manifest"])
    def test_a_version_is_no_staged_manifest(self, catalog: Directory, table: TableInfo, name: str) -> None:
        with pytest.raises(InvalidInput, match="name of a version"):
            create(catalog, NewVersion(T, 1, f"_versions/{name}"))
        assert manifests(table) == [v2(1)]

    def test_what_is_no_manifest_of_the_version(self, catalog: Directory, table: TableInfo) -> None:
        asked = stage(table.location, 1)
        path = Path("/", asked.manifest_path)
        whole = path.read_bytes()
        position = int.from_bytes(whole[-16:-8], "little")
        broken = {
            "does not end with LANC": [b"", b"{}", whole[:-1], whole[:-16]],
            "is cut off": [whole[position:], whole[-20:], whole[: position + 4] + whole[-16:]],
            "cannot be read": [whole[: position + 4] + b"\xff" * (len(whole) - position - 20) + whole[-16:]],
            "names no version": [b"\0\0\0\0" + b"\0" * 8 + whole[-8:]],
        }
        for why, contents in broken.items():
            for content in contents:
                path.write_bytes(content)
                with pytest.raises(InvalidInput, match=why) as refused:
                    create(catalog, asked.entry(T))
                assert path.name in refused.value.message
        path.write_bytes(whole)
        with pytest.raises(InvalidInput, match="of version 2, not of 3"):
            create(catalog, asked.entry(T, version=3))
        path.unlink()
        with pytest.raises(InvalidInput, match="no staged manifest"):
            create(catalog, asked.entry(T))
        assert versions(load(catalog, T)) == [1]

    def test_a_manifest_of_a_branch(self, catalog: Directory, table: TableInfo) -> None:
        dataset = append(table, 1)
        branch = dataset.create_branch("b")
        of_branch = next(Path(path_of(table), "tree").rglob("*.manifest"))
        staged = Path(path_of(table), "_versions", f"{v2(branch.version)}-{'0' * 32}")
        shutil.copy(of_branch, staged)
        with pytest.raises(InvalidInput, match="branch b"):
            create(catalog, NewVersion(T, branch.version, str(staged)))

    def test_only_the_next_version(self, catalog: Directory, table: TableInfo) -> None:
        first, second = stage(table.location, 1), stage(table.location, 2)
        create(catalog, first.entry(T))
        with pytest.raises(TableVersionAlreadyExists, match=r"Version 2 .* already exists"):
            create(catalog, second.entry(T))
        late = stage(table.location, 3)
        catalog.delete_table_versions(T, [VersionRange(2, 3)], ignore_missing=False)
        with pytest.raises(ConcurrentModification, match=r"Version 3 .* latest version is 1"):
            create(catalog, late.entry(T))
        assert Path("/", second.manifest_path).exists()
        assert lance.dataset(table.location).count_rows() == 0

    def test_a_repeat_succeeds(self, catalog: Directory, table: TableInfo) -> None:
        asked = stage(table.location, 1)
        staged = Path("/", asked.manifest_path)
        kept = staged.read_bytes()
        made = create(catalog, asked.entry(T))
        append(table, 2)
        staged.write_bytes(kept)
        again = create(catalog, asked.entry(T))
        assert again == made
        assert not staged.exists()
        assert lance.dataset(table.location).to_table()["id"].to_pylist() == [1, 2]

    def test_a_repeat_without_the_staged_manifest_is_known_by_its_e_tag(
        self, catalog: Directory, table: TableInfo
    ) -> None:
        asked = stage(table.location, 1)
        made = create(catalog, asked.entry(T))
        [note] = Path(path_of(table), "_irc_bridge").iterdir()
        note.unlink()
        again = create(catalog, asked.entry(T, e_tag=asked.e_tag))
        assert (again.manifest_path, again.e_tag) == (made.manifest_path, asked.e_tag)
        for other in (None, '"another"'):
            with pytest.raises(InvalidInput, match="no staged manifest"):
                create(catalog, asked.entry(T, e_tag=other))

    def test_a_repeat_is_known_by_the_name_of_the_staged_manifest(
        self, catalog: Directory, table: TableInfo
    ) -> None:
        first = stage(table.location, 1)
        made = create(catalog, first.entry(T))
        create(catalog, stage(table.location, 2).entry(T))
        again = create(catalog, first.entry(T))
        assert (again.version, again.manifest_path) == (2, made.manifest_path)
        with pytest.raises(InvalidInput, match="no staged manifest"):
            create(catalog, first.entry(T, staged_path=first.manifest_path[:-4] + "beef"))

    def test_the_table_must_be_there(self, catalog: Directory, table: TableInfo) -> None:
        asked = stage(table.location, 1)
        with pytest.raises(TableNotFound):
            create(catalog, asked.entry(U))
        catalog.deregister_table(T)
        with pytest.raises(TableNotFound):
            create(catalog, asked.entry(T))
        assert manifests(table)[-1] == v2(1)
        assert len(manifests(table)) == 2


def create_staged(catalog: Directory) -> object:
    [staged] = Path(path_of(load(catalog, T)), "_versions").glob("*.manifest-*")
    return create(catalog, NewVersion(T, 2, str(staged))).version


class TestPermissions:
    def test_a_writer_of_another_user(self, open_root: Path, mode: str) -> None:
        info = open_in(mode, open_root).create_table(T, new_table())
        stage(info.location, 1)
        for folder in (open_root, *open_root.rglob("*")):
            if folder.is_dir():
                folder.chmod(0o777)
        assert as_nobody(create_staged, mode, open_root) == 2
        assert manifests(info) == [v2(2), v2(1)]
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [1]

    def test_a_table_that_may_not_be_written(self, open_root: Path, mode: str) -> None:
        info = open_in(mode, open_root).create_table(T, new_table())
        stage(info.location, 1)
        answer = as_nobody(create_staged, mode, open_root)
        assert isinstance(answer, tuple)
        assert answer[0] == "PermissionDenied"
        assert f"{path_of(info)}/_versions/" in answer[1]
        assert versions(load(open_in(mode, open_root), T)) == [1]


class TestNames:
    @pytest.mark.parametrize("asked_scheme", ["V1", "V2", None])
    def test_the_first_version_is_named_as_asked(
        self, catalog: Directory, asked_scheme: NamingScheme | None
    ) -> None:
        info = catalog.create_table(T, declared(owner="ann"))
        asked = stage_first(info.location, 1)
        create(catalog, asked.entry(T, naming_scheme=asked_scheme))
        assert manifests(info) == ["1.manifest" if asked_scheme == "V1" else v2(1)]
        after = load(catalog, T)
        assert versions(after) == [1]
        assert after.properties["owner"] == "ann"

    @pytest.mark.parametrize("asked_scheme", ["V1", "V2", None])
    @pytest.mark.parametrize("v2_names", [True, False])
    def test_later_ones_follow_the_table(
        self, catalog: Directory, v2_names: bool, asked_scheme: NamingScheme | None
    ) -> None:
        info = catalog.create_table(T, declared())
        first = stage_first(info.location, 1, v2_names=v2_names)
        create(catalog, first.entry(T, naming_scheme=first.naming_scheme))
        create(catalog, stage(info.location, 2).entry(T, naming_scheme=asked_scheme))
        assert manifests(info) == ([v2(2), v2(1)] if v2_names else ["1.manifest", "2.manifest"])
        assert lance.dataset(info.location).to_table()["id"].to_pylist() == [1, 2]

    def test_a_version_never_has_two_names(self, catalog: Directory, root: Path, mode: str) -> None:
        info = catalog.create_table(T, declared())
        first, second = stage_first(info.location, 1), stage_first(info.location, 2)
        create(catalog, first.entry(T, naming_scheme="V1"))
        for each in (catalog, open_in(mode, root)):
            with pytest.raises(TableVersionAlreadyExists):
                create(each, second.entry(T, naming_scheme="V2"))
        assert [name for name in manifests(info) if "-" not in name] == ["1.manifest"]


class TestBatch:
    def test_several_tables(self, catalog: Directory, table: TableInfo) -> None:
        other = catalog.create_table(U, new_table())
        made = catalog.create_table_versions(
            [stage(table.location, 1).entry(T), stage(other.location, 2).entry(U)]
        )
        assert [(each.version, each.manifest_path) for each in made] == [
            (2, f"{table.location}/_versions/{v2(2)}"),
            (2, f"{other.location}/_versions/{v2(2)}"),
        ]
        assert versions(load(catalog, T)) == versions(load(catalog, U)) == [1, 2]

    def test_it_ends_with_the_first_that_fails(self, catalog: Directory, table: TableInfo) -> None:
        other = catalog.create_table(U, new_table())
        first, third = stage(table.location, 1), stage(other.location, 2)
        entries = [first.entry(T), NewVersion(("missing",), 1, "x"), third.entry(U)]
        with pytest.raises(TableNotFound, match="missing"):
            catalog.create_table_versions(entries)
        assert versions(load(catalog, T)) == [1, 2]
        assert versions(load(catalog, U)) == [1]


class TestAbandoned:
    def make_old(self, asked: Request, hours: float) -> Path:
        path = Path("/", asked.manifest_path)
        then = time.time() - hours * 3600
        os.utime(path, (then, then))
        return path

    def test_staged_manifests_that_lost_go_after_a_day(self, catalog: Directory, table: TableInfo) -> None:
        old = self.make_old(stage(table.location, 1), 25)
        young = self.make_old(stage(table.location, 2), 23)
        foreign = old.with_name("notes-2.manifest-x")
        foreign.touch()
        os.utime(foreign, (1, 1))
        create(catalog, stage(table.location, 3).entry(T))
        assert not old.exists()
        assert young.exists()
        assert foreign.exists()
        assert versions(load(catalog, T)) == [1, 2]

    def test_one_that_may_still_win_stays(self, catalog: Directory, table: TableInfo) -> None:
        early = stage(table.location, 1)
        append(table, 2)
        later = self.make_old(stage(table.location, 3), 25)
        catalog.delete_table_versions(T, [VersionRange(2, 3)], ignore_missing=False)
        create(catalog, early.entry(T))
        assert later.exists()
