"""From the manifests of one version to those of the next: what did not change is carried on as it is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.manifest import DataFile, ManifestEntry

from irc_bridge.mirror.avro import Manifest

_LARGEST = 1000
"""So many entries make a manifest: what one change rewrites at most."""
_SMALL, _MANY = 100, 100
"""Manifests with less than `_SMALL` entries are put together when there are more than `_MANY` of them."""

New = tuple[Sequence[ManifestEntry], Sequence[DataFile]]
"""Entries that a new manifest takes over, and the files that it adds."""


@dataclass(frozen=True, slots=True)
class Change:
    carried: list[Manifest]
    new: list[New]


def changed(base: Sequence[Manifest], live: Mapping[str, DataFile]) -> Change:
    """`live` are the files by their paths that the next version has, of one content."""
    carried: list[Manifest] = []
    kept: list[ManifestEntry] = []
    for manifest in base:
        left = [entry for entry in manifest.entries if entry.data_file.file_path in live]
        if len(left) == len(manifest.entries):
            carried.append(manifest)
        else:
            kept += left
    small = [manifest for manifest in carried if len(manifest.entries) < _SMALL]
    if len(small) > _MANY:
        carried = [manifest for manifest in carried if len(manifest.entries) >= _SMALL]
        kept += [entry for manifest in small for entry in manifest.entries]
    there = {entry.data_file.file_path for manifest in base for entry in manifest.entries}
    added = [file for path, file in live.items() if path not in there]
    return Change(carried, [*_new(kept, added)])


def _new(kept: Sequence[ManifestEntry], added: Sequence[DataFile]) -> Iterator[New]:
    """The entries of new manifests. Added files get manifests of their own, so that the next version carries them
    on when other entries change."""
    for start in range(0, len(kept), _LARGEST):
        yield kept[start : start + _LARGEST], ()
    for start in range(0, len(added), _LARGEST):
        yield (), added[start : start + _LARGEST]
