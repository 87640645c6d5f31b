"""Files that are not the table's: named by manifests, behind links, or no files at all."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from contract_tests.conftest import Start
from contract_tests.contract.test_version_commits import adds, asserts
from contract_tests.directory.staging import stage
from contract_tests.lance.client import InDefault, Lance, ok, refused
from contract_tests.worlds.bridge import Client, Server, table_path
from irc_bridge.lance_store.manifests import message_of
from irc_bridge.lance_store.protobuf import block, fields_of, tagged

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
DEFAULT = ("default",)


@dataclass
class Attacked:
    server: Server
    rest: Lance
    client: Client
    root: Path
    """Where its tables lie."""
    outside: Path
    """Where nothing is its business."""

    def create(self, name: str, **properties: str) -> str:
        text = ",".join(f'"{key}": "{value}"' for key, value in properties.items())
        location: str = ok(self.rest.create([name], ROWS, properties=f"{{{text}}}"))["location"]
        return location.removeprefix("file://")

    def iceberg(self, name: str, *updates: Mapping[str, Any], requirements: Any = ()) -> Any:
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.client.post(table_path(DEFAULT, name), json=body)

    def set_property(self, name: str) -> Any:
        return self.iceberg(name, {"action": "set-properties", "updates": {"a": "b"}})


KINDS = {
    "dir": "",
    "dir with its own versions": 'table_version_management = true\ndefault_managed_by = "impl"\n',
    "irc": "",
}


@pytest.fixture(scope="module", params=KINDS)
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """The server behind an `irc` warehouse is another bridge."""
    folder = tmp_path_factory.mktemp("files")
    root, outside = folder / "root", folder / "outside"
    root.mkdir()
    outside.mkdir()
    with ExitStack() as stack:

        def start(warehouse: str) -> Server:
            place = tmp_path_factory.mktemp("server")
            (place / "irc-bridge.toml").write_text(f"[warehouses.main]\n{warehouse}")
            return stack.enter_context(Server("--port", "0", cwd=place))

        server = start(f'root = "{root}"\n{KINDS[request.param]}')
        rest = Lance(server.url)
        if request.param == "irc":
            server = start(f'backend = "irc"\nuri = "{server.url}"\n')
            rest = InDefault(server.url)
        stack.enter_context(rest)
        yield Attacked(server, rest, stack.enter_context(server.client()), root, outside)
        assert "Traceback" not in server.text() and "panicked" not in server.text()


def with_fields(manifest: bytes, *fields: bytes) -> bytes:
    start, end = message_of(manifest)
    message = manifest[start:end] + b"".join(fields)
    return manifest[: start - 4] + len(message).to_bytes(4, "little") + message + manifest[-16:]


def with_name(manifest: bytes, old: str, start: str) -> bytes:
    """Another name of the same length."""
    new = start + "x" * (len(old) - len(start))
    assert manifest.count(old.encode()) >= 1
    return manifest.replace(old.encode(), new.encode())


def of_data(start: str) -> Callable[[bytes], bytes]:
    def change(manifest: bytes) -> bytes:
        *_, fragment = [value for number, value in fields_of(manifest, *message_of(manifest)) if number == 2]
        assert isinstance(fragment, bytes)
        (file,) = [value for number, value in fields_of(fragment) if number == 2]
        assert isinstance(file, bytes)
        name = dict(fields_of(file))[1]
        assert isinstance(name, bytes)
        return with_name(manifest, name.decode(), start)

    return change


def of_transaction(manifest: bytes) -> bytes:
    name = dict(fields_of(manifest, *message_of(manifest)))[12]
    assert isinstance(name, bytes)
    return with_name(manifest, name.decode(), "../../")


def base(path: str) -> bytes:
    return block(18, tagged(1, 7) + tagged(3, 1) + block(4, path.encode()))


def fragment(*fields: bytes) -> bytes:
    return block(2, tagged(1, 99) + b"".join(fields) + tagged(4, 3))


EVIL: dict[str, Callable[[bytes], bytes]] = {
    "a base path": lambda manifest: with_fields(manifest, base("/outside/table.lance")),
    "a base path in a URI": lambda manifest: with_fields(manifest, base("file:///outside/table.lance")),
    "a base path in another store": lambda manifest: with_fields(manifest, base("s3://outside/table.lance")),
    "a base path at home": lambda manifest: with_fields(manifest, base("~/table.lance")),
    "a base path above": lambda manifest: with_fields(manifest, base("../table.lance")),
    "data above": of_data("../../../"),
    "data above, hidden": of_data("a/../../../"),
    "data above, encoded": of_data("%2e%2e/%2E%2E/"),
    "data at the root": of_data("/"),
    "data in a URI": of_data("file:///"),
    "data with backslashes": of_data("..\\..\\"),
    "a transaction above": of_transaction,
    "row ids above": lambda manifest: with_fields(manifest, fragment(block(6, block(1, b"../../x")))),
    "times above": lambda manifest: with_fields(manifest, fragment(block(8, block(1, b"../../x")))),
    "more times above": lambda manifest: with_fields(manifest, fragment(block(10, block(1, b"../../x")))),
    "an overlay above": lambda manifest: with_fields(manifest, fragment(block(11, block(1, block(1, b"../x"))))),
    "a fragment with a long key": lambda manifest: with_fields(
        manifest, b"\x92\x00" + fragment(block(2, block(1, b"../../x")))[1:]
    ),
}  # fmt: skip


@pytest.mark.parametrize("evil", EVIL)
def test_a_manifest_that_names_files_elsewhere_is_no_version(attacked: Attacked, name: str, evil: str) -> None:
    for managed_by in ("storage", "impl"):
        table = f"{name}_{managed_by}"
        place = attacked.create(table, managed_by=managed_by)
        asked = stage(place, data=ROWS)
        staged = Path("/", asked.manifest_path)
        staged.write_bytes(EVIL[evil](staged.read_bytes()))
        body = {"version": 2, "manifest_path": asked.manifest_path, "naming_scheme": "V2"}
        refused(attacked.rest.table([table], "version/create", body), 400, 13, "names files outside of its table")
        levels = ["default", table] if isinstance(attacked.rest, InDefault) else [table]
        batch = {"entries": [{"id": levels, **body}]}
        refused(attacked.rest.post("table/version/batch-create", batch), 400, 13, "outside of its table")
        commit = attacked.iceberg(table, *adds(2, f"_versions/{staged.name}"), requirements=[asserts(1)])
        assert commit.status_code == 400, commit.text
        assert lance.dataset(place).version == 1
        assert attacked.client.metadata(DEFAULT, table)["current-snapshot-id"] == 1


def test_an_index_above(attacked: Attacked, name: str) -> None:
    place = attacked.create(name, managed_by="storage")
    dataset = lance.dataset(place)
    dataset.create_scalar_index("id", "BTREE")
    assert attacked.client.metadata(DEFAULT, name)["current-snapshot-id"] == 2
    asked = stage(place, data=ROWS)
    staged = Path("/", asked.manifest_path)
    staged.write_bytes(with_name(staged.read_bytes(), "page_data.lance", "../../"))
    body = {"version": 3, "manifest_path": asked.manifest_path}
    refused(attacked.rest.table([name], "version/create", body), 400, 13, "names files outside of its table")


def test_a_version_of_ones_own(attacked: Attacked, name: str) -> None:
    place = attacked.create(name)
    asked = stage(place, data=ROWS)
    body = {"version": 2, "manifest_path": asked.manifest_path, "naming_scheme": "V2"}
    assert ok(attacked.rest.table([name], "version/create", body))["version"]["version"] == 2
    assert ok(attacked.rest.table([name], "count_rows", {"predicate": "id > 1"})) == 4


def clone(source: str | Path, target: str | Path) -> None:
    dataset = lance.write_dataset(ROWS, str(source))
    dataset.shallow_clone(str(target), dataset.version)


@pytest.mark.parametrize("mode", ["", "manifest_enabled = false\n"])
def test_a_clone_of_what_lies_elsewhere(start: Start, tmp_path: Path, mode: str) -> None:
    """It is there, and can be looked at. Its rows are not read, and it gets no versions."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    clone(outside / "source.lance", root / "c.lance")
    settings = f'[warehouses.main]\nroot = "{root}"\n{mode}'
    with start(settings) as server, server.client() as client, Lance(server.url) as rest:
        attacked = Attacked(server, rest, client, root, outside)
        assert client.metadata(DEFAULT, "c")["current-snapshot-id"] == 1
        refused(rest.table(["c"], "count_rows", {"predicate": "id > 1"}), 400, 13, "outside of its table")
        assert attacked.set_property("c").status_code == 400
        assert lance.dataset(root / "c.lance").version == 1
    allowed = f'allowed_locations = ["/nowhere", "{outside}"]\n'
    with start(f"{settings}{allowed}") as server, server.client() as client, Lance(server.url) as rest:
        attacked = Attacked(server, rest, client, root, outside)
        assert ok(rest.table(["c"], "count_rows", {"predicate": "id > 1"})) == 2
        assert attacked.set_property("c").status_code == 200
        assert lance.dataset(root / "c.lance").version == 2


def test_a_clone_of_another_table_of_the_warehouse(start: Start, tmp_path: Path) -> None:
    clone(tmp_path / "root" / "source.lance", tmp_path / "root" / "c.lance")
    server = start(arguments=(str(tmp_path / "root"),))
    with server.client() as client, Lance(server.url) as rest:
        attacked = Attacked(server, rest, client, tmp_path / "root", tmp_path)
        assert ok(rest.table(["c"], "count_rows", {"predicate": "id > 1"})) == 2
        assert attacked.set_property("c").status_code == 200


def test_a_clone_of_what_lies_elsewhere_is_not_registered(start: Start, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    clone(outside / "source.lance", root / "deep" / "c")
    with start(arguments=(str(root),)) as server, Lance(server.url) as rest:
        refused(rest.table(["r"], "register", {"location": "deep/c"}), 400, 13, "outside of its table")
        refused(rest.table(["r"], "exists", {}), 404, 4)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": lambda path: listening(path).close(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a link to itself": lambda path: path.symlink_to(path),
}


def listening(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    # the name of a socket may have about a hundred bytes
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        made.bind(path.name)
    finally:
        os.chdir(here)
    return made


@pytest.mark.parametrize("special", SPECIAL)
def test_what_is_no_file_is_no_manifest(attacked: Attacked, name: str, special: str) -> None:
    make = SPECIAL[special]
    place = Path(attacked.create(name))
    make(place / "_versions" / f"{2**64 - 1 - 2:020}.manifest")
    make(place / "_versions" / "latest")
    assert attacked.client.metadata(DEFAULT, name)["current-snapshot-id"] == 1
    assert attacked.client.load(DEFAULT, name, snapshots="all")["metadata"]["current-snapshot-id"] == 1
    assert [each["version"] for each in ok(attacked.rest.table([name], "version/list", {}))["versions"]] == [1]
    refused(attacked.rest.table([name], "version/describe", {"version": 2}), 404, 11)
    staged = place / "_versions" / f"{2**64 - 1 - 2:020}.manifest-00000000-0000-0000-0000-000000000000"
    make(staged)
    body = {"version": 2, "manifest_path": str(staged)[1:]}
    refused(attacked.rest.table([name], "version/create", body), 400, 13, "no staged manifest")
    commit = attacked.iceberg(name, *adds(2, f"_versions/{staged.name}"), requirements=[asserts(1)])
    assert commit.status_code == 400, commit.text


@pytest.mark.parametrize("special", SPECIAL)
def test_what_is_no_folder_is_no_table(attacked: Attacked, name: str, special: str) -> None:
    make, (p, q, r) = SPECIAL[special], (attacked.root / f"{name}{each}.lance" for each in "pqr")
    make(p)
    q.mkdir()
    make(q / "_versions")
    make(q / ".lance-reserved")
    (r / "_versions").mkdir(parents=True)
    manifest = r / "_versions" / f"{2**64 - 1 - 1:020}.manifest"
    make(manifest)
    assert not [each for each in attacked.client.tables(DEFAULT) if each.startswith(name)]
    for place in (p, q, r, manifest):
        body = {"location": f"file://{place}"}
        refused(attacked.rest.table([f"{name}t"], "register", body), 400, 13)
    for place in (p, q, r):
        assert attacked.rest.table([place.stem], "describe", {}).status_code == 404


def test_a_staged_manifest_that_is_a_folder_or_huge(attacked: Attacked, name: str) -> None:
    place = Path(attacked.create(name))
    (place / "_versions" / "staged").mkdir()
    with (place / "_versions" / "huge").open("wb") as file:
        file.truncate(2**40)
    for staged, why in (("staged", "no staged manifest"), ("huge", "too large")):
        body = {"version": 2, "manifest_path": f"_versions/{staged}"}
        refused(attacked.rest.table([name], "version/create", body), 400, 13, why)
