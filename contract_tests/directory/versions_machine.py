"""The version operations, drawn at random among the others."""

from pathlib import Path

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from contract_tests.directory.model_machine import LEVELS, Machine, draw, has_folders, has_tables
from contract_tests.directory.staging import stage, stage_first
from contract_tests.directory.versions_model import Asked
from irc_bridge.catalog.models import Levels, NewVersion, VersionRange

VERSIONS = st.sampled_from([1, 1, 1, 2, 2, 3, 4, 6])
OFF_BY = st.sampled_from([0] * 4 + [-1, 1] + [0] * 4)
ENDS = st.sampled_from([2, 3, 4, 5, -1])
CLOSED = st.builds(lambda start, length: (start, start + length), VERSIONS, st.sampled_from([0, 1, 1, 1, 2, 2, 3]))
RANGES = st.lists(
    st.one_of(CLOSED, CLOSED, st.tuples(VERSIONS, st.just(-1)), st.tuples(st.just(0), ENDS)), max_size=2
)

has_whole = precondition(lambda machine: machine.whole_tables())
has_staged = precondition(lambda machine: machine.staged_tables())


class VersionsMachine(Machine):
    @has_folders
    @rule(data=st.data())
    def stage(self, data: st.DataObject) -> None:
        """A writer prepares the next version of a table, hidden ones too."""
        folder = data.draw(st.sampled_from([*self.model.folders]), "folder")
        self.staged_in(folder)

    @has_staged
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        """A writer made a version and died before its staged file was removed."""
        table = data.draw(st.sampled_from(self.staged_tables()), "table")
        folder, files = self.model.load(table).folder, self.model.files_of(table)
        name = data.draw(st.sampled_from([*files.staged]), "staged")
        assume(not files.staged[name].there)
        path = self.root / folder / "_versions" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.contents[name])
        self.model.put_back(folder, name)

    @has_whole
    @rule(data=st.data())
    def create_version(self, data: st.DataObject) -> None:
        self.create_versions("create version", [self.an_entry(data)])

    @has_whole
    @rule(data=st.data())
    def create_batch(self, data: st.DataObject) -> None:
        self.create_versions("create versions", [self.an_entry(data), self.an_entry(data)])

    def create_versions(self, kind: str, asked: list[Asked]) -> None:
        entries = [
            NewVersion(each.table, each.version, f"_versions/{each.staged}", e_tag=each.e_tag) for each in asked
        ]
        catalog = next(self.turns)
        self.attempt(
            kind,
            lambda: catalog.create_table_versions(entries),
            lambda _: self.model.create_versions(asked),
            lambda made: [self.recorded(each) for each in made],
        )

    @has_tables
    @rule(
        data=st.data(),
        descending=st.booleans(),
        after=st.one_of(st.none(), VERSIONS),
        limit=st.sampled_from([None, 1, 2, 3]),
    )
    def list_versions(self, data: st.DataObject, descending: bool, after: int | None, limit: int | None) -> None:
        table = self.a_whole_table(data)
        catalog = next(self.turns)
        self.attempt(
            "list versions",
            lambda: catalog.list_table_versions(table, descending=descending, after=after, limit=limit),
            lambda _: self.model.listed(table, descending, after, limit),
            lambda page: ([self.recorded(each) for each in page.items], page.more),
        )

    @has_tables
    @rule(data=st.data(), version=st.one_of(st.none(), VERSIONS))
    def describe_version(self, data: st.DataObject, version: int | None) -> None:
        table = self.a_whole_table(data)
        catalog = next(self.turns)
        self.attempt(
            "describe version",
            lambda: catalog.describe_table_version(table, version),
            lambda _: self.model.described(table, version),
            self.recorded,
        )

    @has_tables
    @rule(data=st.data(), version=VERSIONS)
    def load_version(self, data: st.DataObject, version: int) -> None:
        table = self.a_whole_table(data)
        catalog = next(self.turns)
        self.attempt(
            "load version",
            lambda: catalog.load_version(table, version),
            lambda _: self.model.load_version(table, version),
            self.loaded,
        )

    @has_tables
    @rule(data=st.data(), drawn=RANGES, ignore_missing=st.booleans())
    def delete_versions(self, data: st.DataObject, drawn: list[tuple[int, int]], ignore_missing: bool) -> None:
        table = self.a_whole_table(data)
        ranges = [VersionRange(start, end) for start, end in drawn]
        catalog = next(self.turns)
        self.attempt(
            "delete versions",
            lambda: catalog.delete_table_versions(table, ranges, ignore_missing),
            lambda _: self.model.delete_versions(table, ranges, ignore_missing),
        )

    def a_whole_table(self, data: st.DataObject) -> Levels:
        """The seeds do not say what the versions are of a table whose files are gone."""
        table = self.a_table(data)
        assume(not self.model.is_broken(table))
        return table

    def whole_tables(self) -> list[Levels]:
        return [table for table in self.model.all_tables() if not self.model.is_broken(table)]

    def staged_tables(self) -> list[Levels]:
        return [table for table in self.whole_tables() if self.model.files_of(table).staged]

    def staged_in(self, folder: str) -> str:
        """The name of a staged file, for the version after the latest."""
        location = str(self.root / folder)
        asked = stage(location, 1) if self.model.folders[folder].versions else stage_first(location, 1)
        name = Path(asked.manifest_path).name
        self.contents[name] = (self.root / folder / "_versions" / name).read_bytes()
        self.model.stage(folder, name, asked.version, asked.e_tag)
        return name

    def an_entry(self, data: st.DataObject) -> Asked:
        """Mostly one that fits."""
        owner = data.draw(st.sampled_from(self.staged_tables() * 2 + self.whole_tables()), "table")
        files = self.model.files_of(owner)
        folder = self.model.load(owner).folder
        anew = not files.staged or data.draw(st.booleans(), "staged anew")
        name = self.staged_in(folder) if anew else data.draw(st.sampled_from([*files.staged]), "staged")
        staged = files.staged[name]
        table = draw(data, "of table", LEVELS, [owner])
        assume(not self.model.is_broken(table))
        version = staged.version + data.draw(OFF_BY, "off by")
        e_tag = staged.manifest.e_tag if data.draw(st.booleans(), "with its e_tag") else None
        return Asked(table, version, name, e_tag)
