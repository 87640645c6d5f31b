"""Errors of pylance as errors of this project: their kind stands only in their text, and a panic is no
Exception."""

from collections.abc import Iterator
from contextlib import contextmanager

from irc_bridge.errors import (
    BridgeError,
    BrokenTable,
    ConcurrentModification,
    Internal,
    NotFound,
    PermissionDenied,
    ServiceUnavailable,
)
from irc_bridge.storage.base import first_line, is_panic

_MISSING = ("was not found", "not found:", "no such file or directory")
_CONFLICT = ("too many concurrent writers", "commit conflict", "incompatible transaction", "conflicting")
_UNREACHABLE = ("http error:", "status code: 5")
_DISK = ("no space left on device", "disk quota exceeded", "file too large", "input/output error")
_DENIED = ("permission denied", "accessdenied", "access denied", "forbidden")


class Missing(NotFound):
    """Lance found no table, or no such version of it. The caller knows which, and says so in better words."""


class Lost(ConcurrentModification):
    """Another commit came first; what was read is stale. The caller decides again; a client that hears of it all
    the same is told to do so."""


@contextmanager
def lance_errors(location: str) -> Iterator[None]:
    try:
        yield
    except BridgeError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise _translated(location, error) from error


def _translated(location: str, error: BaseException) -> Exception:
    text = str(error).lower()
    if isinstance(error, PermissionError) or any(word in text for word in _DENIED):
        return PermissionDenied(f"Not allowed to read or write the Lance table at {location}")
    if any(word in text for word in _UNREACHABLE):
        return ServiceUnavailable(
            f"The storage of the Lance table at {location} does not answer: {first_line(error)}"
        )
    if any(word in text for word in _DISK):
        return Internal(f"Could not read or write the Lance table at {location}: {first_line(error)}")
    if any(word in text for word in _CONFLICT):
        return Lost(f"Others changed the Lance table at {location} meanwhile: try again")
    if any(word in text for word in _MISSING):
        return Missing(str(error))
    return broken(location, first_line(error))


def broken(location: str, why: str) -> BrokenTable:
    return BrokenTable(
        f"The Lance table at {location} cannot be read: {why}. Only this table is affected; "
        f"restore its files or drop it."
    )
