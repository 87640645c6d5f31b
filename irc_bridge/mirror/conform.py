"""Lance's values as Iceberg's: what LoadTable says of a column that is converted happens here.
Runs in executors, so it knows pyarrow only."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the schema, in its types; a struct loses fields that the schema does not have."""
    arrays = [_conform(batch.column(field.name), batch.schema.field(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _conform(array: pa.Array, field: pa.Field, wanted: pa.DataType) -> pa.Array:
    array = _stored(array, field, wanted)
    if array.type == wanted and not pa.types.is_nested(wanted):
        return array
    if pa.types.is_struct(wanted):
        return _struct(_from_its_start(array), wanted)
    if pa.types.is_map(wanted):
        return _map(_from_its_start(array), wanted)
    if pa.types.is_list(wanted):
        return _list(_from_its_start(array), wanted)
    return _primitive(array, wanted)


def _stored(array: pa.Array, field: pa.Field, wanted: pa.DataType) -> pa.Array:
    """The array as its plain storage, without an extension type and without a dictionary."""
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()
    if isinstance(array.type, pa.BaseExtensionType):
        name, array = array.type.extension_name, array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if name == "lance.bfloat16" and pa.types.is_float32(wanted):
        return _bfloat16(array)
    return array


def _bfloat16(array: pa.Array) -> pa.Array:
    """Its two bytes are the upper half of a float."""
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    halves = np.frombuffer(array.buffers()[1], dtype="<u2", count=array.offset + len(array))[array.offset :]
    return pa.array((halves.astype("<u4") << 16).view("<f4"), pa.float32(), mask=nulls)


def _primitive(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if isinstance(wanted, pa.BaseExtensionType):
        return wanted.wrap_array(array.cast(wanted.storage_type))
    if pa.types.is_duration(array.type):
        array = array.cast(pa.duration("us"), safe=False)
    if pa.types.is_float16(array.type):
        return pc.cast(array, wanted)
    if pa.types.is_date64(array.type):
        array = pc.floor_temporal(array.cast(pa.timestamp("ms")), unit="day")
    elif pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = pc.floor_temporal(array.view(pa.timestamp("ns")), unit="microsecond")
    # what is lost by it is named in the table's properties; a cast alone would round up what lies before 1970
    return array.cast(wanted, safe=False)


def _struct(array: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    children = [_conform(array.field(field.name), array.type.field(field.name), field.type) for field in wanted]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def _list(array: pa.Array, wanted: pa.ListType) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type):
        values, offsets = _fixed_size(array)
    else:
        values, offsets = array.values, array.offsets.cast(pa.int32())
    items = _conform(values, array.type.value_field, wanted.value_type)
    return pa.ListArray.from_arrays(offsets, items, type=wanted, mask=_mask(array))


def _fixed_size(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Items of null lists are there; they are left out, since a reader may take them for values."""
    size = array.type.list_size
    if array.null_count == 0:
        return array.values, pa.array(np.arange(len(array) + 1, dtype=np.int32) * np.int32(size))
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(valid * size)]).astype(np.int32)
    return array.flatten(), pa.array(offsets)


def _map(array: pa.MapArray, wanted: pa.MapType) -> pa.Array:
    keys = _conform(array.keys, array.type.key_field, wanted.key_type)
    items = _conform(array.items, array.type.item_field, wanted.item_type)
    return pa.MapArray.from_arrays(array.offsets, keys, items, type=wanted, mask=_mask(array))


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _from_its_start(array: pa.Array) -> pa.Array:
    """A slice would bring the offset of its parent along."""
    return array.take(pa.array(np.arange(len(array)))) if array.offset else array
