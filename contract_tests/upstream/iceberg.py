"""What a server says of an ordinary Iceberg table, and what clients ask of one."""

import json
from typing import Any
from uuid import UUID, uuid4

from contract_tests.upstream.faulty import Reply
from contract_tests.upstream.replies import JSON, answer


def load_result(uuid: UUID | None = None, **more: Any) -> bytes:
    """With spaces and an order of fields that no encoder here would choose."""
    metadata = {
        "format-version": 2,
        "table-uuid": str(uuid or uuid4()),
        "location": "s3://bucket/t",
        "last-updated-ms": 1,
        "properties": {"owner": "someone"},
        "doc": 'says "table_type": "lance" in a text',
        **more,
    }
    own = f"{metadata['location']}/metadata/m.json"
    return json.dumps({"metadata-location": own, "metadata": metadata}, indent=1).encode()


def loaded(uuid: UUID | None = None, **more: Any) -> Reply:
    return answer(body=load_result(uuid, **more))


def commit(uuid: UUID | None = None) -> dict[str, Any]:
    requirements = [] if uuid is None else [{"type": "assert-table-uuid", "uuid": str(uuid)}]
    return {"requirements": requirements, "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}


CREATE = {"name": "t", "schema": {"type": "struct", "fields": []}, "properties": {"a": "b"}}
COMMITTED = answer(body=b'{"metadata-location": "m",  "metadata": {}}', headers=[*JSON, ("ETag", '"e"')])
