"""One form of location everywhere: `file:///abs/path/t.lance`, `s3://bucket/path/t.lance`.

Lance decodes %XX in a URI; pyiceberg and Hadoop do not. So only what breaks a URI for Lance is encoded.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from irc_bridge.errors import Internal, InvalidInput

LOCAL = "file"
REMOTE = ("s3", "s3a", "gs", "az", "abfs", "abfss")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}
_REMOVED_BY_URI_PARSERS = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$")
_ENCODED = str.maketrans({"%": "%25", "?": "%3F", "#": "%23", "\\": "%5C"})


def file_uri(path: str) -> str:
    return "file://" + encoded(path)


def encoded(path: str) -> str:
    text = path.translate(_ENCODED)
    # a URI loses the spaces at its end
    return text[:-1] + "%20" if text.endswith(" ") else text


def scheme_of(location: str) -> str:
    head, separator, _ = location.partition("://")
    if separator:
        return head.lower()
    return LOCAL


def local_path(location: str) -> str:
    """The path of a `file:` URI or of a plain path, made absolute from the current folder."""
    return _without_dots(_absolute_path(location))


def _absolute_path(location: str) -> str:
    if _is_file_uri(location):
        location = location[len("file:") :]
        if location.startswith("//"):
            host, slash, path = location[2:].partition("/")
            if host not in ("", "localhost"):
                raise InvalidInput(f"A file URI names no host, but file:{location} names {host}")
            location = slash + path
        location = unquote(location)
    if location.startswith("/"):
        return location
    try:
        return str(Path(location).expanduser().absolute())
    except RuntimeError:
        raise InvalidInput(f"{location} begins with the name of a user who has no home folder") from None


def _is_file_uri(location: str) -> bool:
    return location[:5].lower() == "file:"


def place_of(location: str, path: str) -> str:
    """The URI of a file below a table, for readers that decode nothing in it."""
    if scheme_of(location) == LOCAL:
        return f"file://{local_path(location)}/{path}"
    return f"{unquote(location)}/{path}"


def path_below(location: str, uri: str) -> str:
    """The path below a table of a file that `place_of` or the table's storage named."""
    for start in (place_of(location, ""), f"{location}/"):
        if uri.startswith(start):
            return uri.removeprefix(start)
    raise Internal(f"{uri} does not lie below the table {location}")


def _without_dots(path: str) -> str:
    kept: list[str] = []
    for part in path.split("/"):
        if part == "..":
            kept = kept[:-1]
        elif part not in ("", "."):
            kept.append(part)
    return "/" + "/".join(kept)


class AllowedLocations:
    """The places below a few prefixes. Whole parts of paths are compared: s3://bucket/a does not cover s3://bucket/ab.
    A local path is compared as the place that its symbolic links lead to."""

    def __init__(self, prefixes: Sequence[str] | None) -> None:
        """With None they cover every location. InvalidInput for a prefix that is no location."""
        self._anywhere = prefixes is None
        prefixes = prefixes or ()
        self._local = tuple(local_path(prefix) for prefix in prefixes if scheme_of(prefix) == LOCAL)
        self._remote = tuple(_remote_parts(prefix) for prefix in prefixes if scheme_of(prefix) != LOCAL)

    def covers(self, location: str) -> bool:
        """Whether the location is one of the prefixes or lies below one. False for a location that storage systems
        read in different ways."""
        if self._anywhere:
            return True
        if _REMOVED_BY_URI_PARSERS.search(location):
            return False
        if scheme_of(location) == LOCAL:
            return self._covers_local(location)
        place = _remote_parts(location)
        is_plain = not {"", ".", ".."} & set(place)
        return is_plain and any(place[: len(prefix)] == prefix for prefix in self._remote)

    def _covers_local(self, location: str) -> bool:
        if _is_file_uri(location) and "\\" in location:
            # URI parsers take it for a slash
            return False
        try:
            # the operating system follows links before it applies `..`, URI parsers apply `..` first
            places = {_real(_absolute_path(location)), _real(local_path(location))}
        except (InvalidInput, ValueError):
            return False
        prefixes = [_real(prefix) for prefix in self._local]
        return all(any(place.is_relative_to(prefix) for prefix in prefixes) for place in places)


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


def _remote_parts(uri: str) -> list[str]:
    """Scheme and store as one part, then the parts of the decoded path."""
    scheme, _, rest = uri.partition("://")
    store, _, path = rest.partition("/")
    scheme = scheme.lower()
    path = unquote(path).rstrip("/")
    return [f"{_SAME_STORE.get(scheme, scheme)}://{store}", *(path.split("/") if path else ())]
