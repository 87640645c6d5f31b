"""Tags, read from their files: pylance does not find those whose names are not plain ASCII."""

import json
from urllib.parse import unquote

from irc_bridge.lance_store.storage import Storage

FOLDER = "_refs/tags"
_SUFFIX = ".json"


def read_tags(storage: Storage, path: str) -> dict[str, int]:
    """The versions of the main branch that tags stand on. A file that is no tag is none."""
    folder = f"{path}/{FOLDER}"
    tags = {}
    for name in sorted(storage.names(folder)):
        version = _version(storage.read(f"{folder}/{name}")) if name.endswith(_SUFFIX) else None
        if version is not None:
            tags[unquote(name.removesuffix(_SUFFIX))] = version
    return tags


def _version(content: bytes | None) -> int | None:
    try:
        tag = json.loads(content or b"null")
    except ValueError:
        return None
    if not isinstance(tag, dict) or tag.get("branch") is not None:
        return None
    version = tag.get("version")
    return version if isinstance(version, int) else None
