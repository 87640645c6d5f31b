"""The columns of a source as those of a table: matched by name, cast where no value can be lost unseen."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from irc_bridge.errors import InvalidInput

_Is = Callable[[pa.DataType], bool]
_KINDS: Sequence[tuple[_Is, _Is]] = (
    (pa.types.is_null, lambda _: True),
    (pa.types.is_integer, lambda wanted: pa.types.is_integer(wanted) or pa.types.is_floating(wanted)),
    (pa.types.is_floating, pa.types.is_floating),
    (pa.types.is_decimal, pa.types.is_decimal),
    (pa.types.is_boolean, pa.types.is_boolean),
    (pa.types.is_date, pa.types.is_date),
    (pa.types.is_time, pa.types.is_time),
    (pa.types.is_duration, pa.types.is_duration),
    (
        lambda each: pa.types.is_string(each) or pa.types.is_large_string(each),
        lambda each: pa.types.is_string(each) or pa.types.is_large_string(each),
    ),
    (
        lambda each: pa.types.is_binary(each) or pa.types.is_large_binary(each),
        lambda each: (
            pa.types.is_binary(each) or pa.types.is_large_binary(each) or pa.types.is_fixed_size_binary(each)
        ),
    ),
)
"""What is of the first kind may become what is of the second; each value is looked at on the way."""


def storable(schema: pa.Schema) -> pa.Schema:
    """For a new table: everything may be null, and times with a zone are kept in UTC."""
    return pa.schema([pa.field(each.name, _storable(each.type)) for each in schema])


def require_fitting(source: pa.Schema, table: pa.Schema, name: str) -> None:
    """InvalidInput says which columns do not fit and why."""
    wrong = [f"{each}: the table has no such column" for each in source.names if each not in table.names]
    for field in table:
        if field.name in source.names:
            reason = why_not(source.field(field.name).type, field.type)
        else:
            reason = (
                None if field.nullable else "the source has no such column, and the table takes no nulls there"
            )
        if reason is not None:
            wrong.append(f"{field.name}: {reason}")
    if wrong:
        raise InvalidInput(
            f"The source does not fit {name}. {'; '.join(wrong)}. Choose and cast its columns with --format sql"
        )


def why_not(given: pa.DataType, wanted: pa.DataType) -> str | None:
    """Why values of one type cannot be kept as the other."""
    wanted = _stored(wanted)
    if given == wanted:
        return None
    if is_list(given) and is_list(wanted):
        return why_not(given.value_type, wanted.value_type)
    if pa.types.is_map(given) and pa.types.is_map(wanted):
        return why_not(given.key_type, wanted.key_type) or why_not(given.item_type, wanted.item_type)
    if pa.types.is_struct(given) and pa.types.is_struct(wanted):
        return _why_not_struct(given, wanted)
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        return None if (given.tz is None) == (wanted.tz is None) else _cannot(given, wanted)
    fits = any(is_given(given) and is_wanted(wanted) for is_given, is_wanted in _KINDS)
    return None if fits else _cannot(given, wanted)


def fitted(batch: pa.RecordBatch, table: pa.Schema) -> pa.RecordBatch:
    """InvalidInput for a value that its column cannot hold."""
    return pa.RecordBatch.from_arrays([_fitted(batch, field) for field in table], schema=table)


def _fitted(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    given = batch.column(field.name)
    if given.null_count and not field.nullable:
        raise InvalidInput(f"Column {field.name}: the source has nulls, and the table takes none")
    try:
        made = given if given.type == field.type else given.cast(field.type)
    except pa.ArrowException as error:
        raise InvalidInput(f"Column {field.name}: {str(error).splitlines()[0]}") from error
    if made is not given and _overflows(given, made):
        raise InvalidInput(f"Column {field.name}: a number of the source is too large for {field.type}")
    return made


def _overflows(given: pa.Array, made: pa.Array) -> bool:
    """Arrow makes infinity of it."""
    if pa.types.is_float64(given.type) and pa.types.is_floating(made.type):
        return bool(pc.any(pc.and_(pc.is_inf(made), pc.invert(pc.is_inf(given)))).as_py())
    if is_list(given.type) and is_list(made.type):
        return _overflows(given.flatten(), made.flatten())
    if pa.types.is_struct(made.type):
        both = {each.name for each in given.type} & {each.name for each in made.type}
        return any(_overflows(given.field(name), made.field(name)) for name in both)
    if pa.types.is_map(made.type):
        return _overflows(given.items, made.items)
    return False


def _storable(each: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(each) and each.tz is not None:
        return pa.timestamp(each.unit, "UTC")
    if pa.types.is_list(each):
        return pa.list_(pa.field("item", _storable(each.value_type)))
    if pa.types.is_map(each):
        return pa.map_(_storable(each.key_type), _storable(each.item_type))
    if pa.types.is_struct(each):
        return pa.struct([pa.field(child.name, _storable(child.type)) for child in each])
    return each


def _why_not_struct(given: pa.StructType, wanted: pa.StructType) -> str | None:
    known = {field.name: field for field in wanted}
    for field in given:
        if field.name not in known:
            return f"the table has no field {field.name} in it"
        if reason := why_not(field.type, known[field.name].type):
            return f"its field {field.name}: {reason}"
    missing = [name for name, field in known.items() if given.get_field_index(name) < 0 and not field.nullable]
    return f"the source has no field {missing[0]} in it" if missing else None


def _stored(each: pa.DataType) -> pa.DataType:
    if isinstance(each, pa.BaseExtensionType):
        return _stored(each.storage_type)
    return each.value_type if pa.types.is_dictionary(each) else each


def is_list(each: pa.DataType) -> bool:
    return bool(pa.types.is_list(each) or pa.types.is_large_list(each) or pa.types.is_fixed_size_list(each))


def _cannot(given: pa.DataType, wanted: pa.DataType) -> str:
    return f"{given} cannot become {wanted}"
