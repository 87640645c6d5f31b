"""The folder of a table: the files that mark it (seeds 001 and 002), the file that makes it one, and which folders
a new table can have: those that storage systems can keep, and in which nothing else is kept."""

import re
from dataclasses import dataclass

from irc_bridge.lance_store.staged import MADE
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import MIRROR, VERSIONS

RESERVED = ".lance-reserved"
"""The folder is that of a table which is declared."""
DEREGISTERED = ".lance-deregistered"
"""The folder is that of a table whose name is gone. The bridge writes a token into it that is never used twice."""
LOCK = ".irc-bridge-lock"
"""One process removes the folder, or registers it, at this moment."""

TABLE_PARTS = {
    *(RESERVED, DEREGISTERED, LOCK),
    *("_versions", "_transactions", "_deletions", "_indices", "_refs", "data", "tree", "_irc_bridge", "_iceberg"),
}
"""What lies in the folder of a Lance table: markers, Lance's own folders, and those of the bridge."""

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


@dataclass(frozen=True, slots=True)
class FirstFile:
    """The file that makes a folder a table: the manifest of version 1, or a marker. Its content is like that of
    no other, so that a creator knows its own file from one that another put there after a drop."""

    storage: Storage
    path: str
    content: bytes
    rows: tuple[str, ...] = ()
    """The files of the rows of version 1. They are removed when the manifest does not make the table."""

    def put(self) -> bool:
        """False when there is one already. When a first answer was lost, what is there already is our own."""
        made = self.storage.put_if_absent(self.path, self.content) or self.is_there()
        if not made:
            self._discard_rows()
        return made

    def is_there(self) -> bool:
        return self.storage.read(self.path) == self.content

    def is_whole(self) -> bool:
        """Whether it is there with all files that it names: a drop takes those too that were there before it."""
        return self.is_there() and all(self.storage.identity(file) is not None for file in self.rows)

    def remove(self) -> None:
        if self.is_there():
            self.storage.delete(self.path)
        self._discard_rows()

    def _discard_rows(self) -> None:
        for file in self.rows:
            self.storage.delete(file)
