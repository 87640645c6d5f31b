"""Tags, read from their files: pylance does not find those whose names are not plain ASCII."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from irc_bridge.errors import BrokenTable, InvalidInput
from irc_bridge.lance_store.failures import Lost, Missing, lance_errors
from irc_bridge.storage.base import Storage, first_line

FOLDER = "_refs/tags"
_SUFFIX = ".json"
_LONGEST = 200
_NAME = re.compile(rf"(?=.{{1,{_LONGEST}}}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def read_tags(storage: Storage, path: str) -> dict[str, int]:
    """The versions of the main branch that tags stand on. A file that is no tag is none."""
    folder = f"{path}/{FOLDER}"
    tags = {}
    for name in sorted(storage.names(folder)):
        version = _version(storage.read(f"{folder}/{name}")) if name.endswith(_SUFFIX) else None
        if version is not None:
            tags[unquote(name.removesuffix(_SUFFIX))] = version
    return tags


def require_tag_name(name: str) -> None:
    """Lance's own rules; and letters of ASCII, because pylance lists no tags of a table that has others."""
    if not _NAME.fullmatch(name) or name.endswith(".lock"):
        raise InvalidInput(
            f"A tag cannot be named {name!r}: use ASCII letters, digits, - and _, single dots inside, "
            f"at most {_LONGEST} characters, and not the ending .lock"
        )


@contextmanager
def tag_errors(location: str) -> Iterator[None]:
    """Lance's own errors of a change to a tag. Raises Lost where another writer changed tags or versions."""
    try:
        with lance_errors(location):
            yield
    except Missing as error:
        raise Lost(first_line(error)) from error
    except BrokenTable as error:
        why = first_line(error.__cause__ or error)
        if why.startswith(("Ref conflict", "Ref not found", "Version not found")):
            raise Lost(why) from error
        raise


def _version(content: bytes | None) -> int | None:
    try:
        tag = json.loads(content or b"null")
    except (ValueError, RecursionError):
        return None
    if not isinstance(tag, dict) or tag.get("branch") is not None:
        return None
    version = tag.get("version")
    return version if isinstance(version, int) else None
