"""Versions that name files outside of their table are not copied."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from contract_tests.directory.opened import open_in
from contract_tests.mirror.mirroring import Lake, in_turn, same_rows
from irc_bridge.backends.directory import open_directory
from irc_bridge.catalog.ports import CanAllowLocations
from irc_bridge.errors import InvalidInput
from irc_bridge.pipeline.mirroring import Mirroring, Versions

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A table whose versions are its own, and from the third on another's."""
    source = lance.write_dataset(ROWS, tmp_path / "outside" / "source.lance")
    lake = Lake(str(tmp_path / "root"))
    lake.write(ROWS)
    lake.write(ROWS, mode="append")
    clone = tmp_path / "clone.lance"
    source.shallow_clone(str(clone), source.version)
    for number in range(2):
        lance.dataset(clone).update_metadata({"a": str(number)})
    third = f"_versions/{2**64 - 1 - 3:020}.manifest"
    Path(lake.uri, third).write_bytes((clone / third).read_bytes())
    return lake


def bring(root: str, *allowed: str) -> None:
    catalog = open_directory(root, manifest_enabled=False, allowed_locations=allowed)
    Mirroring(Versions.parse("all"), in_turn).bring("main.default.t", catalog, ("t",))


def test_versions_before_are_copied_and_the_report_names_the_place(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Version 3 of the table") as error:
        bring(lake.root)
    for word in (str(tmp_path / "outside" / "source.lance"), "allowed_locations", "is not mirrored"):
        assert word in error.value.message
    assert lake.mirror().present() == {1, 2}
    assert same_rows(lake.seen(2), lake.open(2).to_table())
    with pytest.raises(InvalidInput, match="Version 3"):
        bring(lake.root)
    assert lake.mirror().present() == {1, 2}


def test_allowed_locations(lake: Lake, tmp_path: Path) -> None:
    bring(lake.root, str(tmp_path / "outside"))
    assert lake.mirror().present() == {1, 2, 3}
    assert same_rows(lake.seen(3), ROWS)


def test_another_table_of_the_root(tmp_path: Path) -> None:
    source = lance.write_dataset(ROWS, tmp_path / "root" / "source.lance")
    source.shallow_clone(str(tmp_path / "root" / "t.lance"), source.version)
    bring(str(tmp_path / "root"))
    lake = Lake(str(tmp_path / "root"))
    assert lake.mirror().present() == {1}
    assert same_rows(lake.seen(1), ROWS)


def test_every_mode_of_a_folder_says_what_it_allows(tmp_path: Path) -> None:
    for mode in ("v1", "v2", "compat"):
        catalog = open_in(mode, tmp_path)
        assert isinstance(catalog, CanAllowLocations)
        assert catalog.allowed_locations() == (str(tmp_path),)
