from collections.abc import Sequence

from irc_bridge.catalog.models import VersionRange
from irc_bridge.errors import InvalidInput

LATEST = -1


def versions_in(ranges: Sequence[VersionRange], present: Sequence[int]) -> tuple[set[int], int | None]:
    """Those present that lie in a range, and the first that a range names but is not there. `present` rises."""
    found: set[int] = set()
    missing: list[int] = []
    for each in ranges:
        if each.start < 0 or (each.end <= each.start and each.end != LATEST):
            raise InvalidInput(
                f"Not a range of versions: [{each.start}, {each.end}). It goes from its start up to but not "
                f"including its end; [0, {LATEST}) are all"
            )
        inside = [version for version in present if version >= each.start]
        if each.end != LATEST:
            inside = [version for version in inside if version < each.end]
            missing.extend(_first_missing(each, inside))
        found.update(inside)
    return found, min(missing, default=None)


def _first_missing(asked: VersionRange, inside: Sequence[int]) -> list[int]:
    if asked.start == 0 and not inside:
        return []
    expected = asked.start or inside[0]
    for version in inside:
        if version != expected:
            break
        expected += 1
    return [expected] if expected < asked.end else []
