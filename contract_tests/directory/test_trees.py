"""Whole folders in a storage: listed, copied, removed. On a local disk and on S3."""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from obstore.store import S3Store

from contract_tests.worlds.roots import S3Root
from contract_tests.worlds.s3 import S3
from irc_bridge.errors import InvalidInput
from irc_bridge.lance_store.uploads import NewFiles
from irc_bridge.storage import object_store as object_storage
from irc_bridge.storage.base import Storage, open_storage
from irc_bridge.storage.local_trees import STAGED

FILES = {
    "_versions/2.manifest": b"two",
    "_versions/1.manifest": b"one",
    "data/a b%20c#d?é.lance": b"x" * 100_000,
    "data/deep/er/b.lance": b"b",
    ".lance-reserved": b"{}",
    "empty": b"",
}


def local_storage(folder: Path) -> Storage:
    return open_storage(str(folder / "root"), {})


def s3_storage(s3: S3) -> Storage:
    return open_storage(f"{s3.bucket('trees')}/root", s3.options)


@pytest.fixture
def local(tmp_path: Path) -> Storage:
    return local_storage(tmp_path)


@pytest.fixture
def on_s3(s3: S3) -> Storage:
    return s3_storage(s3)


@pytest.fixture(params=["local", "on_s3"])
def storage(request: pytest.FixtureRequest) -> Storage:
    chosen: Storage = request.getfixturevalue(request.param)
    return chosen


def fill(storage: Storage, folder: str) -> None:
    for name, content in FILES.items():
        storage.write(f"{folder}/{name}", content)


def content_of(storage: Storage, folder: str) -> dict[str, bytes | None]:
    return {entry.name: storage.read(f"{folder}/{entry.name}") for entry in storage.tree(folder)}


def test_a_tree_is_every_file_with_its_identity(storage: Storage) -> None:
    fill(storage, "a/t")
    storage.write("a/t2/beside", b"no")
    assert content_of(storage, "a/t") == FILES
    for entry in storage.tree("a/t"):
        assert entry.identity == storage.identity(f"a/t/{entry.name}")
    assert storage.tree("a/nothing") == []


def test_a_copy_has_every_file(storage: Storage) -> None:
    fill(storage, "a/t")
    storage.copy_tree("a/t", "b/u")
    assert content_of(storage, "b/u") == content_of(storage, "a/t") == FILES
    storage.delete_tree("a/t", None)
    assert storage.tree("a/t") == []
    assert content_of(storage, "b/u") == FILES
    storage.copy_tree("a/t", "b/u")
    assert content_of(storage, "b/u") == FILES


def test_what_is_being_written_is_not_copied(storage: Storage) -> None:
    fill(storage, "t")
    storage.write(f"t/_versions/{STAGED}x", b"half")
    storage.copy_tree("t", "u")
    assert content_of(storage, "u") == content_of(storage, "t") == FILES


@pytest.fixture
def removed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first folder that is to be made is there, and another process removes it at once, as empty."""
    make = os.mkdir
    met: list[str] = []

    def mkdir(path: str, mode: int = 0o777) -> None:
        if not met:
            met.append(path)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        make(path, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    return met


def test_a_folder_that_another_process_removes_as_empty(tmp_path: Path, removed_meanwhile: list[str]) -> None:
    storage = open_storage(str(tmp_path), {})
    assert storage.put_if_absent("t/a", b"x")
    assert storage.read("t/a") == b"x"
    removed_meanwhile.clear()
    storage.write("u/b", b"y")
    assert storage.read("u/b") == b"y"
    storage.write("staged", b"z")
    removed_meanwhile.clear()
    storage.retire("staged", "v/note")
    assert storage.read("v/note") == b"z"
    removed_meanwhile.clear()
    storage.delete_tree("t", None)
    assert sorted(storage.folders()) == ["u", "v"]
    removed_meanwhile.clear()
    with NewFiles(tmp_path.as_uri(), {}).make("w/file") as file:
        Path(file.path).write_bytes(b"large")
    assert storage.read("w/file") == b"large"


def test_a_parquet_copy_is_not_copied(storage: Storage) -> None:
    """Paths in it are absolute."""
    fill(storage, "t")
    storage.write("t/_iceberg/data/a.parquet", b"rows")
    storage.write("t/_iceberg/versions/1-0123456789abcdef.avro", b"list")
    storage.write("t/data/_iceberg/b.lance", b"Lance's own")
    assert len(storage.tree("t")) == len(FILES) + 3
    storage.copy_tree("t", "u")
    assert content_of(storage, "u") == {**FILES, "data/_iceberg/b.lance": b"Lance's own"}


def test_a_copy_that_was_stopped_is_finished(storage: Storage) -> None:
    fill(storage, "t")
    storage.write("u/_versions/1.manifest", b"another's, made since")
    storage.write("u/data/deep/er/b.lance", FILES["data/deep/er/b.lance"])
    storage.write("u/more", b"stays")
    storage.copy_tree("t", "u")
    others = {"_versions/1.manifest": b"another's, made since", "more": b"stays"}
    assert content_of(storage, "u") == {**FILES, **others}


def test_a_copy_made_twice_leaves_files_on_disk_alone(local: Storage) -> None:
    fill(local, "t")
    local.write("u/data/deep/er/b.lance", FILES["data/deep/er/b.lance"])
    there = local.identity("u/data/deep/er/b.lance")
    local.copy_tree("t", "u")
    first = sorted(local.tree("u"), key=lambda entry: entry.name)
    assert local.identity("u/data/deep/er/b.lance") == there
    local.copy_tree("t", "u")
    assert sorted(local.tree("u"), key=lambda entry: entry.name) == first


def test_a_copy_made_twice_on_s3_sends_nothing_again(on_s3: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(on_s3, "t")
    on_s3.copy_tree("t", "u")

    def refuse(*_: object) -> None:
        raise AssertionError("copied again")

    monkeypatch.setattr(S3Store, "copy", refuse)
    on_s3.copy_tree("t", "u")
    on_s3.delete("u/empty")
    with pytest.raises(AssertionError, match="copied again"):
        on_s3.copy_tree("t", "u")


def test_many_copy_at_once(storage: Storage) -> None:
    fill(storage, "t")
    with ThreadPoolExecutor(6) as threads:
        for copy in [threads.submit(storage.copy_tree, "t", "u") for _ in range(6)]:
            copy.result()
    assert content_of(storage, "u") == FILES


def test_files_on_disk_are_linked(local: Storage, tmp_path: Path) -> None:
    fill(local, "t")
    local.copy_tree("t", "u")
    for name in FILES:
        assert (tmp_path / "root/t" / name).samefile(tmp_path / "root/u" / name)


def test_a_disk_without_links(local: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(local, "t")

    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", no_link)
    for _ in range(2):
        local.copy_tree("t", "u")
        assert content_of(local, "u") == FILES
    assert not (tmp_path / "root/t/empty").samefile(tmp_path / "root/u/empty")
    assert not list((tmp_path / "root").rglob(f"{STAGED}*"))


def test_a_folder_that_is_a_link(local: Storage, tmp_path: Path) -> None:
    """What it leads to is not the table's: neither copied nor removed."""
    fill(local, "t")
    (tmp_path / "root/t/data").rename(tmp_path / "elsewhere")
    (tmp_path / "root/t/data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="symbolic link"):
        local.copy_tree("t", "u")
    assert local.tree("u") == []
    local.delete_tree("t", None)
    assert not (tmp_path / "root/t").exists()
    assert (tmp_path / "elsewhere/deep/er/b.lance").exists()


def test_marks_of_empty_folders_are_no_files(s3: S3) -> None:
    root = S3Root(s3.bucket("marks"), s3.options)
    storage = open_storage(root.uri, root.options)
    fill(storage, "t")
    for folder in ("t", "t/_versions", "t/_refs"):
        root.make_folder(root.at(folder))
    assert content_of(storage, "t") == FILES
    assert sorted(storage.names("t/_versions")) == ["1.manifest", "2.manifest"]
    assert storage.names("t/_refs") == []
    storage.copy_tree("t", "u")
    assert content_of(storage, "u") == FILES


@pytest.fixture
def small_copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(object_storage, "_ONE_COPY", 10)
    yield


@pytest.mark.usefixtures("small_copies")
def test_files_that_are_too_large_for_one_copy(on_s3: Storage) -> None:
    fill(on_s3, "t")
    on_s3.write("t/data/large", os.urandom(12_000_000))
    on_s3.copy_tree("t", "u")
    assert content_of(on_s3, "u") == content_of(on_s3, "t")


def test_thousands_of_files(on_s3: Storage) -> None:
    names = [f"_versions/{number}.manifest" for number in range(1, 1105)] + [f"data/{n}" for n in range(1105)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: on_s3.write(f"t/{name}", b"x"), names))
    on_s3.write("t/.mark", b"mark")
    on_s3.write("t2/beside", b"stays")
    assert len(on_s3.tree("t")) == len(names) + 1
    on_s3.delete_tree("t", ".not-there")
    assert len(on_s3.tree("t")) == len(names) + 1
    on_s3.delete_tree("t", ".mark")
    assert on_s3.tree("t") == []
    assert content_of(on_s3, "t2") == {"beside": b"stays"}
