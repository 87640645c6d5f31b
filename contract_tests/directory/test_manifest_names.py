import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc_bridge.storage.layout import newest_of

SECOND = "18446744073709551614.manifest"
"""Version 1 in Lance's second naming scheme, in which a name is 2^64 - 1 less the version."""


@pytest.mark.parametrize(
    ("names", "newest"),
    [
        ([], None),
        (["latest_version_hint.json"], None),
        ([SECOND, "18446744073709551613.manifest"], "18446744073709551613.manifest"),
        (["9.manifest", "10.manifest"], "10.manifest"),
        ([SECOND, "18446744073709551613.manifest-0d1c2b3a-5e6f-4a4b-8c9d-112233445566"], SECOND),
        ([SECOND, "09223372036854775807.manifest", "00000000000000000007.manifest"], SECOND),
        ([SECOND, "1000000000000000000x.manifest", "10000000000000000000.manifes_"], SECOND),
    ],
)
def test_the_newest_of_what_lies_in_a_folder(names: list[str], newest: str | None) -> None:
    assert newest_of(names) == newest


@given(st.sets(st.integers(1, 2**63 - 1), min_size=1), st.booleans(), st.randoms())
def test_it_is_the_highest_version_in_either_scheme(versions: set[int], first: bool, random: object) -> None:
    def name(version: int) -> str:
        return f"{version}.manifest" if first else f"{2**64 - 1 - version:020}.manifest"

    names = [name(version) for version in versions]
    random.shuffle(names)  # type: ignore[attr-defined]

    assert newest_of(names) == name(max(versions))
