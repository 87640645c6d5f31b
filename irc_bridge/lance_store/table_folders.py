"""Which folders a new table can have: those that storage systems can keep, and that nothing else is kept in."""

import re

from irc_bridge.lance_store.manifests import VERSIONS
from irc_bridge.lance_store.mirrored import MIRROR
from irc_bridge.lance_store.staged import MADE

MANIFEST = "__manifest"
WORKING = frozenset({MANIFEST, VERSIONS, MADE, MIRROR, "_transactions", "_deletions", "_indices", "_refs"})
"""Folders of a table or of a root in which Lance or this server keeps other files. A table also has folders named
`data` and `tree`: these are ordinary words elsewhere."""
_PREFIXES = (".irc-bridge-", ".lance-", "lance-marker.staging.")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
LONGEST_PART = 255
"""The bytes of a file's name on most disks."""
FILES = 160
"""What the files of a table add to the path of its folder, in bytes."""


def why_no_folder(path: str, longest: int) -> str | None:
    """Why no new table can lie at a path of the root, where a path may have `longest` bytes."""
    if len(path.encode(errors="replace")) + FILES > longest:
        return f"is too long: its path in the root may have {longest - FILES} bytes"
    return next((why for part in path.split("/") if (why := _why_not(part)) is not None), None)


def _why_not(part: str) -> str | None:
    if part in ("", ".", ".."):
        return "is not the path of a folder inside the root"
    if CONTROL.search(part):
        return "contains a control character"
    if len(part.encode()) > LONGEST_PART:
        return f"has a part of more than {LONGEST_PART} bytes"
    if part in WORKING or part.startswith(_PREFIXES):
        return f"lies in a folder named {part}, in which Lance or this server keeps other files"
    return None
