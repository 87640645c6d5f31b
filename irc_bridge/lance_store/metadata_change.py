"""Changes that look at no data: properties and schema. Lance makes them on a copy of the table that holds nothing
but its manifest; however many versions that takes there, what comes out is the manifest of the next one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa

from irc_bridge.catalog.models import Addition, Alteration, FieldPath, SchemaChange
from irc_bridge.errors import BrokenTable, InvalidInput
from irc_bridge.lance_store.failures import Missing, lance_errors
from irc_bridge.lance_store.manifests import renumbered
from irc_bridge.lance_store.schemas import require_readable
from irc_bridge.storage.base import first_line
from irc_bridge.storage.layout import VERSIONS, newest_of

_DOC = "doc"


@dataclass(frozen=True, slots=True)
class Reshape:
    properties: Mapping[str, str]
    """All of them, as they are afterwards."""
    schema: SchemaChange | None = None
    schema_metadata: Mapping[str, str] | None = None


def next_manifest(manifest: bytes, name: str, version: int, wanted: Reshape) -> bytes | None:
    """None when nothing changes. `name` is the file name of the manifest, `version` its version."""
    with TemporaryDirectory(prefix="irc-bridge-") as folder:
        versions = Path(folder, VERSIONS)
        versions.mkdir()
        (versions / name).write_bytes(manifest)
        dataset = lance.dataset(folder)
        _set_metadata(dataset, wanted)
        if wanted.schema is not None:
            _reshape(dataset, wanted.schema)
        if dataset.version == version:
            return None
        newest = newest_of([each.name for each in versions.iterdir()])
        assert newest is not None
        return renumbered((versions / newest).read_bytes(), version + 1)


def _set_metadata(dataset: lance.LanceDataset, wanted: Reshape) -> None:
    old = dataset.metadata
    updates: dict[str, str | None] = {key: None for key in old if key not in wanted.properties}
    updates |= {key: value for key, value in wanted.properties.items() if old.get(key) != value}
    if updates:
        dataset.update_metadata(updates)
    if wanted.schema_metadata is not None and wanted.schema_metadata != dataset.schema_metadata:
        dataset.update_schema_metadata(dict(wanted.schema_metadata), replace=True)


def _reshape(dataset: lance.LanceDataset, change: SchemaChange) -> None:
    try:
        with lance_errors(dataset.uri):
            _document(dataset, change.alter)
            if change.drop:
                dataset.drop_columns([_droppable(path) for path in change.drop])
            alterations = list(_alterations(change.alter))
            if alterations:
                dataset.alter_columns(*alterations)
            for each in change.add:
                dataset.add_columns(_nested(each))
            require_readable(Path(dataset.uri))
    except (BrokenTable, Missing) as error:
        cause = error.__cause__ or error
        raise InvalidInput(f"Lance cannot change the schema in this way: {first_line(cause)}") from error


def _document(dataset: lance.LanceDataset, alterations: Iterable[Alteration]) -> None:
    docs: dict[str, dict[str, str | None]] = {
        _quoted(each.path): {_DOC: each.doc or None} for each in alterations if each.doc is not None
    }
    if docs:
        dataset.update_field_metadata(docs)


def _alterations(alterations: Iterable[Alteration]) -> Iterable[Any]:
    for each in alterations:
        changed: dict[str, Any] = {} if each.name is None else {"name": each.name}
        if each.optional:
            changed["nullable"] = True
        if changed:
            yield {"path": _quoted(each.path), **changed}


def _nested(addition: Addition) -> pa.Schema:
    """Lance adds to a struct what a struct of that name has beside the fields it knows."""
    field = addition.field
    for name in reversed(addition.parent):
        field = pa.field(name, pa.struct([field]))
    return pa.schema([field])


def _droppable(path: FieldPath) -> str:
    # Lance would drop nothing and say nothing
    if any("`" in name for name in path):
        raise InvalidInput(f"Column {'.'.join(path)}: Lance drops no field with a backtick in its name")
    return _quoted(path)


def _quoted(path: FieldPath) -> str:
    return ".".join(f"`{name.replace('`', '``')}`" for name in path)
