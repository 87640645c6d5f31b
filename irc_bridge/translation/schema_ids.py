"""The schemas that a table's metadata lists, and the ids under which it lists them.

A schema's id is the first version in storage that has the schema: 1 for a table whose schema never changed. Two
schemas never share an id, so that a client whose schema is stale is told so by `assert-current-schema-id`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyiceberg.schema import Schema

from irc_bridge.catalog import models
from irc_bridge.catalog.models import SchemaIds, TableInfo, TableVersion
from irc_bridge.translation.schema import Translated, to_iceberg

DECLARED_ID = 0
"""The id of the empty schema of a table without versions, because 1 is that of its first version."""
ALWAYS_1 = 1
"""The id of every current schema, by the letter of seed 004."""


@dataclass(frozen=True, slots=True)
class TableSchemas:
    schemas: tuple[Schema, ...]
    """The current one, and then the others by their ids."""
    current: Translated
    ids: Mapping[int, int]
    """The schema id of each listed version."""


def table_schemas(info: TableInfo, current: TableVersion | None, mode: SchemaIds) -> TableSchemas:
    """The schemas of the listed versions; `current` is the version that clients see."""
    if current is None:
        translated = to_iceberg((), ALWAYS_1 if mode == "always-1" else DECLARED_ID)
        return TableSchemas((translated.schema,), translated, {})
    numbered = _by_first_version(info) if mode == "first-version" else _current_is_1(info, current)
    ids = {version.version: _id_of(version.schema, numbered) for version in info.versions}
    listed = {ids[version.version]: version.schema for version in reversed(info.versions)}
    listed[ids[current.version]] = current.schema
    translated = to_iceberg(listed.pop(ids[current.version]), ids[current.version])
    others = (to_iceberg(schema, schema_id).schema for schema_id, schema in sorted(listed.items()))
    return TableSchemas((translated.schema, *others), translated, ids)


_Numbered = list[tuple[models.Schema, int]]
"""Lance schemas and their ids. Lance schemas that Iceberg cannot tell apart have the same id."""


def _by_first_version(info: TableInfo) -> _Numbered:
    return list(_same_shown(info.schema_starts or _starts((), info.versions)))


def _current_is_1(info: TableInfo, current: TableVersion) -> _Numbered:
    ids: dict[int, int] = {}
    numbered = _same_shown(_starts([(0, current.schema)], info.versions))
    return [(schema, ids.setdefault(start, len(ids) + 1)) for schema, start in numbered]


def _starts(
    before: Sequence[tuple[int, models.Schema]], versions: Sequence[TableVersion]
) -> Sequence[tuple[int, models.Schema]]:
    """The first of the versions that has a schema, for each schema that is not in `before`."""
    starts = list(before)
    for version in versions:
        if all(schema is not version.schema and schema != version.schema for _, schema in reversed(starts)):
            starts.append((version.version, version.schema))
    return starts


def _same_shown(starts: Sequence[tuple[int, models.Schema]]) -> Iterator[tuple[models.Schema, int]]:
    """Each Lance schema with the start of the first schema that Iceberg clients see as the same."""
    shown: list[tuple[Schema, int]] = []
    for start, schema in starts:
        translated = to_iceberg(schema, start).schema
        same = next((known for known in shown if _is_same(known[0], translated)), None)
        if same is None:
            shown.append(same := (translated, start))
        yield schema, same[1]


def _is_same(one: Schema, other: Schema) -> bool:
    return (one.fields, one.identifier_field_ids) == (other.fields, other.identifier_field_ids)


def _id_of(schema: models.Schema, numbered: _Numbered) -> int:
    return next(schema_id for known, schema_id in reversed(numbered) if known is schema or known == schema)
