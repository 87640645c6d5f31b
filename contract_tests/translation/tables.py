"""Lance tables as plain values, with golden files of what Iceberg clients see of them."""

import sys

import pyarrow as pa

from irc_bridge.catalog.models import TABLE_UUID, Field, IcebergView, TableInfo, TableVersion
from irc_bridge.translation.metadata import table_metadata

PLAIN = IcebergView(guard_snapshot=False)
"""A view in which every snapshot is a version."""
HOUR = 3_600_000
NOON = 1_700_000_000_000

ID = Field(0, "id", pa.int64(), False, {"lance-schema:unenforced-primary-key:position": "1"})
TEXT = Field(1, "text", pa.large_string(), True, {"doc": "what it says"})
PHOTO = Field(2, "photo d'été", pa.large_binary(), True, {"lance-encoding:blob": "true"})
NUMBER = Field(None, "item", pa.float32(), True)
EMBEDDING = Field(3, "embedding", pa.list_(pa.float32(), 4), True, {}, (NUMBER,))
SEEN = Field(4, "seen", pa.timestamp("ns", "Europe/Berlin"), True)

VECTORS = TableInfo(
    location="file:///data/vectors.lance",
    properties={"owner": "Zoë", TABLE_UUID: "8f0e9c1a-6a0b-4c53-9f9b-3c1d2e4f5a6b"},
    versions=(
        TableVersion(
            version=1,
            timestamp_ms=NOON,
            schema=(ID, TEXT, PHOTO, EMBEDDING, SEEN),
            operation="Overwrite",
            summary={
                "total_rows": "3",
                "total_fragments": "1",
                "total_data_files": "1",
                "total_deletion_files": "0",
                "total_files_size": "1234",
            },
            manifest="file:///data/vectors.lance/_versions/18446744073709551614.manifest",
            max_field_id=4,
        ),
    ),
    tags={},
    updated_ms=NOON,
    token="one",
)

COUNT = Field(0, "count", pa.uint32(), True)
WORD = Field(1, "word", pa.string(), True)
TERM = Field(1, "term", pa.string(), True)
PLACE = Field(2, "place", pa.struct([("x", pa.int8())]), True, {}, (Field(3, "x", pa.int8(), True),))


def _change(number: int, time: int, operation: str, *schema: Field) -> TableVersion:
    manifest = f"s3://lake/history.lance/_versions/{2**64 - 1 - number:020}.manifest"
    highest = 3 if number > 2 else 1
    return TableVersion(number, time, schema, operation, {"total_rows": str(number)}, manifest, highest)


HISTORY = TableInfo(
    location="s3://lake/history.lance",
    properties={"managed_by": "IMPL", "table_type": "LANCE", "irc-bridge.omitted-columns": "not the user's"},
    versions=(
        _change(1, NOON, "Overwrite", COUNT, WORD),
        _change(2, NOON + HOUR, "Append", COUNT, WORD),
        _change(4, NOON, "Merge", COUNT, WORD, PLACE),
        _change(7, NOON + 2 * HOUR, "Delete", COUNT, TERM, PLACE),
        _change(8, NOON + 2 * HOUR, "Restore", COUNT, WORD),
        _change(9, NOON + 3 * HOUR, "CreateIndex", COUNT, TERM, PLACE),
    ),
    tags={"first": 1, "best": 7, "main": 2, "gone": 3},
    updated_ms=NOON + 3 * HOUR,
    token="two",
)

DECLARED = TableInfo(
    location="file:///data/declared.lance",
    properties={"owner": "me"},
    versions=(),
    tags={},
    updated_ms=NOON,
    token="three",
)

TABLES = {"vectors": VECTORS, "history": HISTORY, "declared": DECLARED}

if __name__ == "__main__":
    sys.stdout.write("\n".join(table_metadata(info, PLAIN).model_dump_json() for info in TABLES.values()))
