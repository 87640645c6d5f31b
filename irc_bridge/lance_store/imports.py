"""Parts that executors wrote become the next version of a table: a manifest is staged, and a catalog decides."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import lance
from lance.fragment import FragmentMetadata

from irc_bridge.catalog.models import TableVersion
from irc_bridge.errors import BridgeError, InvalidInput
from irc_bridge.lance_store.failures import Missing, lance_errors
from irc_bridge.lance_store.parts import Part, Place
from irc_bridge.lance_store.staged_rows import SentRows
from irc_bridge.storage.base import open_storage
from irc_bridge.storage.layout import DATA

_DELETIONS = "_deletions"
_SUFFIXES = {"array": "arrow", "bitmap": "bin"}


class Import:
    """The files of one import, in the folder of a table."""

    def __init__(self, place: Place) -> None:
        self._place = place
        above, _, _ = place.location.rstrip("/").rpartition("/")
        self._storage = open_storage(above, place.options)
        path = self._storage.path_of(place.location)
        if path is None:
            raise InvalidInput(f"{place.location} cannot be written to")
        self._path = path
        self._staged: SentRows | None = None

    def stage_append(self, base: TableVersion, parts: Sequence[Part]) -> str:
        """Gives the path of the manifest inside the table, as all that stage do. Lost when `base` is gone."""
        return self._stage(base, lance.LanceOperation.Append(_fragments(parts)))

    def stage_all(self, base: TableVersion | None, parts: Sequence[Part]) -> str:
        """Nothing else is in the table then."""
        schema: Any = self._place.schema if self._place.version is None else _lance_schema(self._place)
        return self._stage(base, lance.LanceOperation.Overwrite(schema, _fragments(parts)))

    def stage_upsert(
        self, base: TableVersion, parts: Sequence[Part], left: Sequence[Part], gone: Sequence[int]
    ) -> str:
        """`left` are fragments of which rows were removed, `gone` the numbers of those that lost all."""
        operation = lance.LanceOperation.Update(
            removed_fragment_ids=list(gone), updated_fragments=_fragments(left), new_fragments=_fragments(parts)
        )
        return self._stage(base, operation)

    def discard(self, parts: Iterable[Part]) -> None:
        """Removes data files that no version names. Lance's own cleanup later removes the files that stay."""
        names = [f"{DATA}/{file['path']}" for part in parts for file in json.loads(part)["files"]]
        self._remove(names)

    def discard_deletions(self, left: Iterable[Part]) -> None:
        self._remove([_deletions_of(json.loads(part)) for part in left])

    def unstage(self) -> None:
        if self._staged is not None:
            with suppress(BridgeError):
                self._staged.discard()
            self._staged = None

    def _stage(self, base: TableVersion | None, operation: Any) -> str:
        self.unstage()
        # parts outlive a manifest that lost
        self._staged = SentRows(self._storage, self._path, operation, owns_rows=False)
        return self._staged.stage(base, {})

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(BridgeError):
                self._storage.delete(f"{self._path}/{name}")


def fragments_at(place: Place) -> dict[int, int]:
    """The numbers of its fragments, and how many rows each has."""
    with lance_errors(place.location):
        return {each.fragment_id: each.physical_rows for each in _open(place).get_fragments()}


def schema_of(location: str, options: Mapping[str, str], version: int) -> Any:
    """Arrow's."""
    try:
        with lance_errors(location):
            return lance.dataset(location, version=version, storage_options=dict(options) or None).schema
    except Missing as error:
        raise InvalidInput(f"Version {version} of the table at {location} is gone: try again") from error


def sizes_of(parts: Iterable[Part]) -> tuple[int, int]:
    """Rows and bytes."""
    said = [json.loads(part) for part in parts]
    size = sum(file["file_size_bytes"] or 0 for each in said for file in each["files"])
    return sum(each["physical_rows"] for each in said), size


def _lance_schema(place: Place) -> Any:
    with lance_errors(place.location):
        return _open(place).lance_schema


def _open(place: Place) -> lance.LanceDataset:
    return lance.dataset(place.location, version=place.version, storage_options=dict(place.options) or None)


def _fragments(parts: Iterable[Part]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(part) for part in parts]


def _deletions_of(fragment: Mapping[str, Any]) -> str:
    file = fragment["deletion_file"]
    name = f"{fragment['id']}-{file['read_version']}-{file['id']}"
    return f"{_DELETIONS}/{name}.{_SUFFIXES[file['file_type']]}"
