"""Storage that refuses, is full or does not answer: each has its code, and says where."""

import itertools
import multiprocessing
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from contract_tests.directory.opened import (
    Directory,
    declared,
    load,
    names,
    new_table,
    open_in,
    set_properties,
    versions,
)
from contract_tests.worlds.disks import small_disk
from contract_tests.worlds.roots import S3Root
from contract_tests.worlds.s3 import S3, s3_server
from contract_tests.worlds.s3_watch import CHANGES, watched
from irc_bridge.errors import BridgeError, Internal, PermissionDenied, ServiceUnavailable

T = ("t",)
Call = Callable[[Directory], object]
READS: list[Call] = [names, lambda catalog: load(catalog, T), lambda catalog: catalog.check()]
CHANGES_OF_ALL: list[Call] = [
    lambda catalog: catalog.create_table(("u",), new_table()),
    lambda catalog: catalog.create_table(("u",), declared()),
    lambda catalog: set_properties(catalog, T, {"a": "b"}),
    lambda catalog: catalog.deregister_table(T),
    lambda catalog: catalog.drop_table(T),
]


@pytest.fixture
def s3_root(s3: S3, mode: str) -> S3Root:
    """With a table of one version."""
    root = S3Root(s3.bucket("errors"), s3.options)
    open_in(mode, root.uri, **root.options).create_table(T, new_table(owner="ann"))
    return root


def assert_untouched(mode: str, root: S3Root | Path) -> None:
    options = root.options if isinstance(root, S3Root) else {}
    catalog = open_in(mode, str(root), **options)
    assert names(catalog) == ["t"]
    assert (versions(load(catalog, T)), load(catalog, T).properties["owner"]) == ([1], "ann")
    assert set_properties(catalog, T, {"a": "b"}).properties["a"] == "b"
    catalog.create_table(("u",), new_table())
    catalog.drop_table(T)
    assert names(catalog) == ["u"]


@contextmanager
def silent_after(allowed: int, endpoint: str) -> Iterator[str]:
    """A server that answers nothing but 503 once so many changes were made."""
    made = itertools.count()
    silent = threading.Event()

    def watch(method: str, _: str) -> int | None:
        if method in CHANGES and next(made) >= allowed:
            silent.set()
        return 503 if silent.is_set() else None

    with watched(endpoint, watch) as url:
        yield url


class TestS3:
    def test_a_wrong_key(self, s3_root: S3Root, mode: str) -> None:
        catalog = open_in(mode, s3_root.uri, **{**s3_root.options, "aws_secret_access_key": "wrong-wrong"})
        for call in (*READS, *CHANGES_OF_ALL):
            with pytest.raises(PermissionDenied, match=s3_root.uri) as error:
                call(catalog)
            assert error.value.lance_code == 15
            assert "wrong-wrong" not in error.value.message
        assert_untouched(mode, s3_root)

    def test_a_bucket_that_may_only_be_read(self, s3: S3, s3_root: S3Root, mode: str) -> None:
        with s3_server(s3.folder, "--readonly") as twin:
            catalog = open_in(mode, s3_root.uri, **twin.options)
            assert names(catalog) == ["t"]
            assert versions(load(catalog, T)) == [1]
            for call in CHANGES_OF_ALL:
                with pytest.raises(PermissionDenied, match=s3_root.uri):
                    call(catalog)
        assert_untouched(mode, s3_root)

    def test_nobody_answers(self, s3_root: S3Root, mode: str) -> None:
        nobody = {**s3_root.options, "aws_endpoint": "http://127.0.0.1:1", "client_max_retries": "1"}
        catalog = open_in(mode, s3_root.uri, **nobody)
        for call in (*READS, *CHANGES_OF_ALL):
            with pytest.raises(ServiceUnavailable, match=s3_root.uri) as error:
                call(catalog)
            assert error.value.lance_code == 17
        assert_untouched(mode, s3_root)

    @pytest.mark.parametrize("change", CHANGES_OF_ALL[:3], ids=["create", "declare", "commit"])
    def test_it_stops_answering_in_the_middle(self, s3_root: S3Root, mode: str, change: Call) -> None:
        """At each change of its own in turn, for good: the caller hears of it, and nothing half done is seen."""
        for allowed in range(100):
            with silent_after(allowed, s3_root.options["aws_endpoint"]) as url:
                few = {**s3_root.options, "aws_endpoint": url, "client_max_retries": "0"}
                try:
                    change(open_in(mode, s3_root.uri, **few))
                    break
                except (ServiceUnavailable, Internal) as error:
                    assert s3_root.uri in error.message
            catalog = open_in(mode, s3_root.uri, **s3_root.options)
            assert load(catalog, T).properties["owner"] == "ann"
            for name in set(names(catalog)) - {"t"}:
                load(catalog, (name,))
                catalog.drop_table((name,))
        assert allowed > 0

    def test_a_bucket_that_is_not_there(self, s3: S3, mode: str) -> None:
        catalog = open_in(mode, "s3://no-such-bucket/tables", **s3.options)
        for call in (*READS, CHANGES_OF_ALL[0]):
            with pytest.raises(Internal, match=r"s3://no-such-bucket/tables.*404"):
                call(catalog)

    def test_answers_that_are_lost(self, s3: S3, mode: str) -> None:
        """The server did it, the answer says otherwise, and the client asks again."""
        root = S3Root(s3.bucket("lost"), s3.options)
        numbers = itertools.count()

        def lose_every_other(method: str, _: str) -> int | None:
            return -500 if method in CHANGES and next(numbers) % 2 == 0 else None

        with watched(s3.endpoint, lose_every_other) as url:
            catalog = open_in(mode, root.uri, **{**root.options, "aws_endpoint": url})
            catalog.create_table(T, new_table(owner="ann"))
            catalog.create_table(("u",), declared())
            assert names(catalog) == ["t", "u"]
            catalog.drop_table(("u",))
        assert_untouched(mode, root)


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_disk(megabytes=1) as folder:
        yield folder


def test_a_full_disk(disk: Path, mode: str) -> None:
    root = disk / "tables"
    catalog = open_in(mode, root)
    catalog.create_table(T, new_table(owner="ann"))
    filler = disk / "filler"
    with pytest.raises(OSError, match="No space left"):
        filler.write_bytes(b"x" * 2_000_000)
    for change in CHANGES_OF_ALL[:4]:
        with pytest.raises(Internal, match=str(root)) as error:
            change(catalog)
        assert (error.value.lance_code, type(error.value)) == (18, Internal)
        assert "o space left" in error.value.message
    assert names(catalog) == ["t"]
    filler.unlink()
    assert_untouched(mode, root)


def _with_small_files(mode: str, root: Path, answers: object) -> None:
    catalog = open_in(mode, root)
    load(catalog, T)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, 8))
    for change in CHANGES_OF_ALL[:4]:
        try:
            change(catalog)
        except BridgeError as error:
            answers.put((type(error).__name__, error.message))  # type: ignore[attr-defined]


def test_a_quota(tmp_path: Path, mode: str) -> None:
    root = tmp_path / "tables"
    open_in(mode, root).create_table(T, new_table(owner="ann"))
    processes = multiprocessing.get_context("forkserver")
    answers = processes.SimpleQueue()
    process = processes.Process(target=_with_small_files, args=(mode, root, answers))
    process.start()
    process.join()
    told = []
    while not answers.empty():
        told.append(answers.get())
    assert [kind for kind, _ in told] == ["Internal"] * 4
    assert all("ile too large" in message for _, message in told)
    assert_untouched(mode, root)
