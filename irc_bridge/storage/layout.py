"""The names of files and folders in the folder of a Lance table."""

import re
from collections.abc import Mapping
from uuid import uuid4

from irc_bridge.catalog.models import NamingScheme

VERSIONS = "_versions"
DATA = "data"
MIRROR = "_iceberg"
"""The folder of the Parquet copy."""
LISTS = f"{MIRROR}/versions"
"""The folder of the manifest lists, one for each version that has a Parquet copy."""
_V1 = re.compile(r"(\d{1,19})\.manifest")
_V2 = re.compile(r"(\d{20})\.manifest")
_LARGEST = 2**64 - 1
_DETACHED = 2**63
_DETACHED_NAME = f"{_LARGEST - _DETACHED:020}.manifest"
_V2_LENGTH = len(_DETACHED_NAME)
_STAGED = re.compile(r"(\d{1,20}\.manifest)-[0-9a-fA-F-]{32,36}")


def version_of(name: str) -> int | None:
    """The version that a file name stands for; None for staged and detached manifests and other files."""
    if match := _V2.fullmatch(name):
        version = _LARGEST - int(match[1])
    elif match := _V1.fullmatch(name):
        version = int(match[1])
    else:
        return None
    return version if 0 < version < _DETACHED else None


def name_of(version: int, like: str | None = None) -> str:
    """The file name of a version, in the naming scheme of the name `like`."""
    if like is not None and _V1.fullmatch(like):
        return f"{version}.manifest"
    return f"{_LARGEST - version:020}.manifest"


def names_of(version: int) -> Mapping[NamingScheme, str]:
    """The file names of a version, the usual one first."""
    return {"V2": name_of(version), "V1": f"{version}.manifest"}


def staged_name(version: int, like: str | None = None) -> str:
    """A name as Lance gives one to the manifest of a version that is still to be made."""
    return f"{name_of(version, like)}-{uuid4()}"


def staged_version(name: str) -> int | None:
    """The version that a staged manifest was written for; None for other files."""
    match = _STAGED.fullmatch(name)
    return version_of(match[1]) if match else None


def newest_of(names: list[str]) -> str | None:
    """The manifest of the latest version. Names of the second scheme fall as versions rise, so that most need
    not be read."""
    alike = [name for name in names if len(name) == _V2_LENGTH and name > _DETACHED_NAME]
    second = min(alike, default=None)
    if second is not None and version_of(second) is None:
        second = min((name for name in alike if version_of(name) is not None), default=None)
    first = [name for name in names if len(name) != _V2_LENGTH]
    candidates = {version: name for name in (second, *first) if name and (version := version_of(name))}
    return candidates[max(candidates)] if candidates else None


FIRST = f"{VERSIONS}/{name_of(1)}"
