"""A storage that stops answering while a version is made: who hears that nothing happened can rely on it, and who
asks again gets the version once."""

import itertools
from collections.abc import Callable

import pytest

from contract_tests.directory.managed import open_managed
from contract_tests.directory.opened import Directory, load, new_table, open_in, set_properties, versions
from contract_tests.directory.staging import stage
from contract_tests.directory.test_storage_errors import silent_after
from contract_tests.worlds.roots import S3Root
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.s3_watch import CHANGES, watched
from irc_bridge.catalog.models import Levels, NewVersion
from irc_bridge.errors import CommitStateUnknown, ServiceUnavailable

T: Levels = ("t",)
Opener = Callable[..., Directory]


def open_v2_managed(root: str, **options: str) -> Directory:
    return open_managed("v2", root, **options)


def open_compatible(root: str, **options: str) -> Directory:
    return open_in("compat", root, **options)


@pytest.fixture(params=[open_compatible, open_v2_managed], ids=["by files", "by rows"])
def opener(request: pytest.FixtureRequest) -> Opener:
    found: Opener = request.param
    return found


def prepared(opener: Opener, s3: S3) -> tuple[S3Root, NewVersion]:
    root = S3Root(s3.bucket("unknown"), s3.options)
    info = opener(root.uri, **root.options).create_table(T, new_table(managed_by="impl"))
    return root, stage(info.location, 1, options=root.options).entry(T)


def ids(root: S3Root, catalog: Directory) -> list[int]:
    found: list[int] = root.open(load(catalog, T).location).to_table()["id"].to_pylist()
    return found


def test_silent_from_some_request_on(opener: Opener, s3: S3) -> None:
    outcomes = set()
    for allowed in range(100):
        root, new = prepared(opener, s3)
        with silent_after(allowed, root.options["aws_endpoint"]) as url:
            catalog = opener(root.uri, **{**root.options, "aws_endpoint": url, "client_max_retries": "0"})
            try:
                catalog.create_table_versions([new])
                outcome = "made"
            except CommitStateUnknown as error:
                outcome = "unknown"
                assert "t" in error.message
            except ServiceUnavailable:
                outcome = "not made"
        catalog = opener(root.uri, **root.options)
        present = versions(load(catalog, T))
        assert present in ([1], [1, 2])
        assert outcome == "unknown" or (outcome == "made") == (present == [1, 2])
        outcomes.add(outcome)
        [made] = catalog.create_table_versions([new])
        assert (made.version, versions(load(catalog, T)), ids(root, catalog)) == (2, [1, 2], [1])
        if allowed > 20 or (outcome == "made" and allowed > 3):
            break
    assert {"unknown", "made"} <= outcomes


def test_answers_that_are_lost(opener: Opener, s3: S3) -> None:
    """The storage did what was asked, each time, and its answer says otherwise: the request is sent again."""
    root, new = prepared(opener, s3)
    numbers = itertools.count()

    def lose_every_other(method: str, _: str) -> int | None:
        return -500 if method in CHANGES and next(numbers) % 2 == 0 else None

    with watched(s3.endpoint, lose_every_other) as url:
        catalog = opener(root.uri, **{**root.options, "aws_endpoint": url})
        catalog.create_table_versions([new])
        assert set_properties(catalog, T, {"a": "1"}).properties["a"] == "1"
    catalog = opener(root.uri, **root.options)
    assert (versions(load(catalog, T)), ids(root, catalog)) == ([1, 2, 3], [1])
    assert catalog.was_made(new)
