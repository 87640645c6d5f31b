"""Symbolic links in a root. What lies behind one that leads out of the root can be read. Nothing there is changed,
removed or copied."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
import pytest
import requests

from contract_tests.conftest import Start
from contract_tests.directory.staging import stage
from contract_tests.lance.client import Lance, ipc, ok, refused
from contract_tests.worlds.bridge import SCHEMA, Client, namespace_path, table_path

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
DEFAULT = ("default",)
MODES = {"v1": "manifest_enabled = false\n", "compat": "", "v2": "dir_listing_enabled = false\n"}


@dataclass
class Linked:
    rest: Lance
    client: Client
    root: Path
    outside: Path
    has_names: bool
    """Whether names are kept beside the folders."""

    def snapshot(self, folder: Path) -> Mapping[str, bytes]:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(params=MODES)
def linked(request: pytest.FixtureRequest, start: Start, tmp_path: Path) -> Iterator[Linked]:
    """`t` becomes a link to a table elsewhere, `way` to a folder with a table, `near` to the table `real`."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    for place in ("t.lance", "way/t", "real.lance", "whole.lance", "near.lance"):
        lance.write_dataset(ROWS, root / place).tags.create("first", 1)
    server = start(f'[warehouses.main]\nroot = "{root}"\n{MODES[request.param]}')
    with Lance(server.url) as rest, server.client() as client:
        if request.param != "v1":
            ok(rest.table(["deep"], "register", {"location": "way/t"}))
        if request.param == "v2":
            for name in ("t", "near", "whole", "real"):
                ok(rest.table([name], "register", {"location": f"{name}.lance"}))
        for moved in ("t.lance", "way", "whole.lance/data"):
            shutil.move(root / moved, outside / Path(moved).name)
            (root / moved).symlink_to(outside / Path(moved).name)
        shutil.rmtree(root / "near.lance")
        (root / "near.lance").symlink_to(root / "real.lance")
        yield Linked(rest, client, root, outside, request.param != "v1")
        assert "Traceback" not in server.text()


def behind_links(linked: Linked) -> list[str]:
    return ["t", "deep"] if linked.has_names else ["t"]


def test_it_can_be_read(linked: Linked) -> None:
    for name in [*behind_links(linked), "near", "whole"]:
        assert name in linked.client.tables(DEFAULT)
        assert linked.client.metadata(DEFAULT, name)["current-snapshot-id"] == 1
        assert ok(linked.rest.table([name], "count_rows", {"predicate": "id > 1"})) == 2
        assert set(ok(linked.rest.table([name], "tags/list", {}))["tags"]) == {"first"}


CHANGES: dict[str, Callable[[Linked, str], requests.Response]] = {
    "a property": lambda linked, name: linked.client.post(
        table_path(DEFAULT, name),
        json={"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]},
    ),
    "rows": lambda linked, name: linked.rest.table([name], "create", ipc(ROWS), mode="overwrite"),
    "a tag": lambda linked, name: linked.rest.table([name], "tags/create", {"tag": "new", "version": 1}),
    "another tag": lambda linked, name: linked.rest.table([name], "tags/update", {"tag": "first", "version": 1}),
    "no tag": lambda linked, name: linked.rest.table([name], "tags/delete", {"tag": "first"}),
    "fewer versions": lambda linked, name: linked.rest.table(
        [name], "version/delete", {"ranges": [{"start_version": 1, "end_version": 2}]}
    ),
    "another name": lambda linked, name: linked.client.post(
        "tables/rename",
        json={
            "source": {"namespace": ["default"], "name": name},
            "destination": {"namespace": ["default"], "name": f"{name}_new"},
        },
    ),
}


def test_it_is_not_changed(linked: Linked) -> None:
    before = linked.snapshot(linked.outside)
    for change, send in CHANGES.items():
        for name in behind_links(linked):
            answer = send(linked, name)
            # the name in a manifest may change, which lies in the root
            statuses = {204, 400} if change == "another name" and linked.has_names else {400, 404, 406}
            assert answer.status_code in statuses, f"{change}: {answer.text}"
            assert linked.snapshot(linked.outside) == before, change


def test_a_version_is_not_made(linked: Linked) -> None:
    for name, place in (("t", linked.outside / "t.lance"), ("deep", linked.outside / "way" / "t")):
        if name in behind_links(linked):
            asked = stage(str(place), data=ROWS)
            before = linked.snapshot(linked.outside)
            body = {"version": 2, "manifest_path": f"_versions/{asked.manifest_path.rpartition('/')[2]}"}
            refused(linked.rest.table([name], "version/create", body), 400, 13, "symbolic link")
            assert linked.snapshot(linked.outside) == before


@pytest.mark.parametrize("purge", ["false", "true", "Lance"])
def test_a_drop_removes_the_link(linked: Linked, purge: str) -> None:
    before, real = linked.snapshot(linked.outside), linked.snapshot(linked.root / "real.lance")
    for name in ("t", "near", "whole"):
        if purge == "Lance":
            ok(linked.rest.table([name], "drop"))
        else:
            answer = linked.client.delete(table_path(DEFAULT, name), params={"purgeRequested": purge})
            assert answer.status_code in (204, 400), answer.text
    if "deep" in behind_links(linked):
        linked.rest.table(["deep"], "drop")
    assert linked.snapshot(linked.outside) == before
    assert linked.snapshot(linked.root / "real.lance") == real
    assert (linked.root / "way").is_symlink()
    assert linked.client.metadata(DEFAULT, "real")["current-snapshot-id"] == 1


def test_deregister(linked: Linked) -> None:
    before, real = linked.snapshot(linked.outside), linked.snapshot(linked.root / "real.lance")
    for name in (*behind_links(linked), "near"):
        answer = linked.rest.table([name], "deregister", {})
        assert answer.status_code in (200, 400), answer.text
        assert (name in linked.client.tables(DEFAULT)) == (answer.status_code == 400)
    assert linked.snapshot(linked.outside) == before
    assert linked.snapshot(linked.root / "real.lance") == real
    assert linked.client.metadata(DEFAULT, "real")["current-snapshot-id"] == 1


def test_nothing_is_made_behind_a_link(linked: Linked) -> None:
    (linked.root / "empty.lance").symlink_to(linked.outside / "empty")
    (linked.outside / "empty").mkdir()
    before = sorted(linked.outside.rglob("*"))
    asked = [("empty", None), ("new", f"file://{linked.root}/way/new"), ("new", f"{linked.root}/way/a/b")]
    for name, location in asked:
        place = {} if location is None else {"location": location}
        body = {"name": name, "schema": SCHEMA, **place}
        made = linked.client.post(f"{namespace_path(DEFAULT)}/tables", json=body)
        declared = linked.rest.table([name], "declare", place)
        sent = linked.rest.create([name], ROWS) if location is None else made
        for answer in (made, declared, sent):
            assert answer.status_code in (200, 400, 409), answer.text
        assert sorted(linked.outside.rglob("*")) == before


def test_nothing_behind_a_link_is_registered(linked: Linked) -> None:
    lance.write_dataset(ROWS, linked.outside / "way" / "more")
    (linked.root / "new.lance").symlink_to(linked.outside / "way" / "more")
    before = linked.snapshot(linked.outside)
    for location in ("way/more", "new.lance", f"file://{linked.root}/way/more"):
        refused(linked.rest.table(["more"], "register", {"location": location}), 400, 13)
        refused(linked.rest.table(["more"], "exists", {}), 404, 4)
    assert linked.snapshot(linked.outside) == before


def test_a_table_with_links_in_its_folder_is_not_moved(linked: Linked) -> None:
    """A rename in the root copies the files: those behind the link are not the table's."""
    if not linked.has_names:
        return
    before = linked.snapshot(linked.outside)
    CHANGES["another name"](linked, "whole")
    inodes = {path.stat().st_ino for path in linked.outside.rglob("*") if path.is_file()}
    copies = [path for path in linked.root.rglob("*") if path.is_file() and not path.is_symlink()]
    real = [path for path in copies if path.stat().st_ino in inodes and not leads_out(path, linked)]
    assert real == []
    assert linked.snapshot(linked.outside) == before


def leads_out(path: Path, linked: Linked) -> bool:
    return path.resolve().is_relative_to(linked.outside)


def test_links_to_allowed_places_are_followed(start: Start, tmp_path: Path) -> None:
    root, disk = tmp_path / "root", tmp_path / "disk"
    lance.write_dataset(ROWS, disk / "t.lance")
    root.mkdir()
    (root / "t.lance").symlink_to(disk / "t.lance")
    server = start(f'[warehouses.main]\nroot = "{root}"\nallowed_locations = ["{disk}"]\n')
    with Lance(server.url) as rest:
        assert ok(rest.create(["t"], ROWS, mode="overwrite"))["version"] == 2
    assert lance.dataset(disk / "t.lance").version == 2
