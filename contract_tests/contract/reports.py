from typing import Any

SCAN_REPORT: dict[str, Any] = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "schema-id": 1,
    "filter": {"type": "eq", "term": "id", "value": 1},
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {"total-planning-duration": {"count": 1, "time-unit": "nanoseconds", "total-duration": 5}},
}
