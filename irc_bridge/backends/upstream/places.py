"""Where Lance tables may lie: at the places that the operator allowed, and at those that the server behind chose.

The server's choice is known by two things: a create that asks for no location gets it, and the server keeps its
own metadata file of the table below it. A metadata file that a client wrote and had registered lies elsewhere, or
in a folder that this client can write to anyway.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import unquote

from irc_bridge.backends.upstream.files import one_form, same_place
from irc_bridge.catalog.models import Levels
from irc_bridge.errors import InvalidInput
from irc_bridge.irc_client.lance_tables import LanceTable
from irc_bridge.lance_store.table_folders import why_no_folder
from irc_bridge.storage.locations import AllowedLocations

_RANDOM = "(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}|[0-9a-f]{8})"
"""What servers, and `unused` of Tables, put into a location so that it is a new one."""
_SHOWN = 200
_LONGEST_PATH = 1000
"""In bytes: what object stores take, and disks more than take."""
_SCHEME_AND_STORE = 3
"""The parts of s3://bucket and file:// between slashes."""
_PLANNED = 1000
"""How many planned places are remembered."""
_SETTING = "the warehouse's setting allowed_locations (its root unless set)"


class Places:
    def __init__(self, root: str | None, allowed: Sequence[str]) -> None:
        """Locations that clients name must lie below `allowed`, or below `root` where that is empty."""
        roots = [] if root is None else [root]
        self._for_clients = AllowedLocations(allowed or roots)
        self._for_the_bridge = AllowedLocations([*allowed, *roots])
        self._planned: OrderedDict[tuple[Levels, str], None] = OrderedDict()

    def are_for_clients(self, location: str) -> bool:
        """Whether a client may name this location as that of a Lance table. InvalidInput for a folder in which
        Lance or the bridge keeps other files."""
        if not _lies_below(self._for_clients, location):
            return False
        why = why_no_folder(self._below_prefix(one_form(location)), _LONGEST_PATH)
        if why is not None:
            raise InvalidInput(f"A Lance table cannot lie at the location {location[:_SHOWN]!r}: it {why}")
        return True

    def plan(self, table: Levels, location: str) -> None:
        """Remembers that this process found a place for the table: files may be written there before the table is
        made."""
        self._planned[table, one_form(location)] = None
        if len(self._planned) > _PLANNED:
            self._planned.popitem(last=False)

    def is_planned(self, table: Levels, location: str) -> bool:
        return (table, one_form(location)) in self._planned

    def _below_prefix(self, location: str) -> str:
        """The part of a covered location that no prefix has."""
        parts = location.split("/")
        start = len(parts)
        while start > _SCHEME_AND_STORE and self._for_clients.covers("/".join(parts[: start - 1])):
            start -= 1
        return "/".join(parts[start:])

    def require_trusted(self, table: LanceTable) -> None:
        """InvalidInput for a table at a location that neither the operator nor the server behind chose."""
        if not (_lies_below(self._for_the_bridge, table.location) or _is_chosen_by_server(table)):
            raise InvalidInput(
                f"This Lance table's files are not touched: it lies at {table.location}, which the server behind "
                f"did not choose and which is not inside {_SETTING}. It can be dropped without a purge"
            )


def not_allowed(location: str) -> InvalidInput:
    return InvalidInput(
        f"A Lance table cannot lie at the location {location[:_SHOWN]!r}: it is not inside {_SETTING}. Leave the "
        f"location out, and the server behind chooses one"
    )


def may_be_choice(name: str, chosen: str, location: str) -> bool:
    """Whether a location could be the server's choice for the table, when it chose another one this time: they
    differ at most in what is random."""
    folder, _, last = chosen.rpartition("/")
    named_folder, _, named = location.rpartition("/")
    fixed = _pattern(name, last)
    return folder == named_folder and bool(re.fullmatch(f"{fixed}(?:-{_RANDOM})?", named))


def _lies_below(allowed: AllowedLocations, location: str) -> bool:
    """Strictly: a table that is a whole allowed location would take the others below it along when it goes."""
    return allowed.covers(location) and allowed.covers(one_form(location).rpartition("/")[0])


def _is_chosen_by_server(table: LanceTable) -> bool:
    location, metadata = table.server_location, table.metadata_location
    if _has_dots(location):
        return False  # the server made it of a name, which a client chose
    if not (same_place(table.location, location) or re.fullmatch("-[0-9a-f]{8}", _suffix(table))):
        return False
    return metadata is None or (
        not _has_dots(metadata) and one_form(metadata).startswith(f"{one_form(location)}/")
    )


def _has_dots(location: str) -> bool:
    return bool({".", ".."} & set(re.split(r"[/\\]", unquote(location))))


def _suffix(table: LanceTable) -> str:
    """The suffix that `unused` of Tables put behind the server's choice, because files of another table lie
    there."""
    return one_form(table.location).removeprefix(one_form(table.server_location))


def _pattern(name: str, last: str) -> str:
    """A regular expression for the last part of a location, in which what is random matches anything random."""
    stem = name if last.startswith(name) else ""
    return re.escape(stem) + _RANDOM.join(map(re.escape, re.split(_RANDOM, last.removeprefix(stem))))
