"""One form of location everywhere: `file:///abs/path/t.lance`, `s3://bucket/path/t.lance`.

Lance decodes %XX in a URI; pyiceberg and Hadoop do not. So only what breaks a URI for Lance is encoded.
"""

from pathlib import Path
from urllib.parse import unquote

from irc_bridge.errors import Internal, InvalidInput

LOCAL = "file"
REMOTE = ("s3", "s3a", "gs", "az", "abfs", "abfss")
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
    if location.startswith("file:"):
        location = location.removeprefix("file:")
        if location.startswith("//"):
            host, slash, path = location[2:].partition("/")
            if host not in ("", "localhost"):
                raise InvalidInput(f"A file URI names no host, but file:{location} names {host}")
            location = slash + path
        location = unquote(location)
    path = location if location.startswith("/") else str(Path(location).expanduser().absolute())
    return _without_dots(path)


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
