"""Which locations a warehouse's `allowed_locations` cover."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc_bridge.errors import InvalidInput
from irc_bridge.storage.locations import AllowedLocations


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "a warehouse"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "form",
    ["{root}", "{root}/", "{root}/t", "{root}/deep/t.lance", "file://{root}/t", "file:{root}/t", "FILE://{root}/t",
     "file://localhost{root}/t", "file://{encoded}/t", "{root}/x/../t", "{root}/./t", "{root}//t", "{root}/..t",
     "{root}/a%2f..%2f..", "{root}/t\\u"],
)  # fmt: skip
def test_local_places_inside(root: Path, form: str) -> None:
    location = form.format(root=root, encoded=str(root).replace(" ", "%20"))
    for prefix in (str(root), f"file://{root}", f"{root}/"):
        assert AllowedLocations([prefix]).covers(location)


@pytest.mark.parametrize(
    "form",
    ["", "/", "{root}x", "{root}x/t", "{root}/..", "{root}/../x", "file://{root}/../x", "file://{root}/%2e%2e/x",
     "file://{root}/%2E./x", "file:///%2e%2e{root}/..", "/elsewhere", "file:///elsewhere", "~/t", "~nobody-here/t",
     "t", "../t", "file:t", "file://host{root}/t", "file://{root}/x\\..\\..\\y", "file://{root}/.\t./y",
     "{root}/t\n", " {root}/t", "file://{root}/t ", "{root}/t\0", "{root}/\ud800", "s3://{root}", "s3://bucket/t",
     "file+uring://{root}/t", "file-object-store://{root}/t"],
)  # fmt: skip
def test_local_places_outside(root: Path, form: str) -> None:
    assert not AllowedLocations([str(root)]).covers(form.format(root=root))


def test_links_are_followed(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (root / "out").symlink_to(outside / "deep")
    (root / "in").symlink_to(root / "t")
    (tmp_path / "same").symlink_to(root)
    for allowed in (AllowedLocations([str(root)]), AllowedLocations([str(tmp_path / "same")])):
        assert allowed.covers(f"{root}/in/x") and allowed.covers(f"{tmp_path}/same/x")
        assert not allowed.covers(f"{root}/out") and not allowed.covers(f"{root}/out/new/table")
        # for the operating system this is the folder `outside`, for whoever reads only the name it is in the root
        assert not allowed.covers(f"{root}/out/../x")


@pytest.mark.parametrize(
    "location",
    ["s3://b/wh", "s3://b/wh/", "s3://b/wh/t", "s3a://b/wh/t", "S3://b/wh/t", "s3://b/wh/a%20b", "s3://b/wh/a b/c",
     "s3n://b/wh/..t"],
)  # fmt: skip
def test_remote_places_inside(location: str) -> None:
    assert AllowedLocations(["gs://other", "s3://b/wh"]).covers(location)
    assert AllowedLocations(["s3a://b/wh/"]).covers(location)
    assert AllowedLocations(["s3://b"]).covers(location)


@pytest.mark.parametrize(
    "location",
    ["s3://b", "s3://b/", "s3://b/whx", "s3://b/whx/t", "s3://b/w", "s3://B/wh/t", "s3://c/wh/t", "s3://b.c/wh/t",
     "s3://x@b/wh/t", "s3://b:80/wh/t", "gs://b/wh/t", "s3://b/wh/../x", "s3://b/wh/%2e%2e/x", "s3://b/wh%2F..%2Fx",
     "s3://b/wh/.", "s3://b//wh/t", "s3://b/wh//t", "s3://b/x/../wh/t", "s3://b/wh/t\n", "s3://b/wh/.\t./t", "s3://",
     "s3:/b/wh/t", "b/wh/t", "/b/wh/t"],
)  # fmt: skip
def test_remote_places_outside(location: str) -> None:
    assert not AllowedLocations(["s3://b/wh"]).covers(location)


def test_nothing_is_covered_without_prefixes() -> None:
    assert not any(map(AllowedLocations([]).covers, ["", "/", "/t", "s3://b", "."]))


def test_everything_is_covered_with_none() -> None:
    assert all(map(AllowedLocations(None).covers, ["", "/", "/t", "s3://b", "../x", "\0"]))


def test_a_prefix_that_is_no_location() -> None:
    with pytest.raises(InvalidInput, match="names no host"):
        AllowedLocations(["file://host/tables"])


PIECES = st.sampled_from(
    ["/", "..", ".", "a", "%2e", "%2f", "%", "file:", "s3:", "//", "wh", "b", "\\", "~", " ", "\0", "?", "#"]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join))
def test_any_text_is_judged(location: str) -> None:
    for prefix in ("/nowhere", "s3://b/wh"):
        below = AllowedLocations([prefix]).covers(f"{prefix}/{location}")
        assert not (below and {".."} & set(location.split("/")) and prefix.startswith("s3"))
        assert not AllowedLocations([f"{prefix}/inner"]).covers(location) or "inner" in location
