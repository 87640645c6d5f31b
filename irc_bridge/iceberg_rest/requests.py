"""Models of request bodies, where pyiceberg has none for servers.

Validation stops at the first error: pydantic keeps all errors, and a megabyte of wrong values would make a
gigabyte.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, StrictStr
from pyiceberg.schema import Schema
from pyiceberg.table.update import TableRequirement, TableUpdate


def _none_as_empty(value: Any) -> Any:
    return {} if value is None else value


def _none_as_no_items(value: Any) -> Any:
    return () if value is None else value


def _a_struct(value: Any) -> Any:
    """Refuses a schema without `fields`: pyiceberg would read a schema with no field."""
    if not isinstance(value, dict) or value.get("type") != "struct" or "fields" not in value:
        raise ValueError("a schema is an object with the type struct and fields")
    _fields(value["fields"], "fields")
    return value


def _fields(value: Any, place: str) -> None:
    for number, field in enumerate(value) if isinstance(value, list) else ():
        here = f"{place}.{number}"
        if not isinstance(field, dict):
            raise ValueError(f"{here} must be an object")
        if not isinstance(field.get("name"), str):
            raise ValueError(f"{here}.name must be a string")
        if not isinstance(field.get("id"), int):
            raise ValueError(f"{here}.id must be a whole number")
        _type(field.get("type"), f"{here}.type")


def _type(value: Any, place: str) -> None:
    if isinstance(value, dict):
        _fields(value.get("fields"), f"{place}.fields")
        for inner in ("element", "key", "value"):
            _type(value.get(inner), f"{place}.{inner}")


def _texts(value: Any) -> Any:
    for key, text in value.items() if isinstance(value, dict) else ():
        if not isinstance(text, str):
            raise ValueError(f"the value of {key} must be a string")
    return value


_LONGEST_LIST = 10_000
"""The longest list in an update, except lists of snapshot ids and of the fields of a schema."""

Properties = Annotated[dict[StrictStr, StrictStr], BeforeValidator(_texts)]
Names = Annotated[tuple[StrictStr, ...], FailFast()]


def _updates(value: Any) -> Any:
    """Refuses updates that pyiceberg accepts: a schema without fields, and numbers in place of texts."""
    for update in value if isinstance(value, list) else ():
        if isinstance(update, dict):
            if update.get("action") == "add-schema":
                _a_struct(update.get("schema"))
            if update.get("action") == "set-properties":
                _texts(update.get("updates"))
            _short_lists({key: field for key, field in update.items() if key != "schema"})
    return value


def _short_lists(value: Any, name: str = "") -> None:
    if isinstance(value, dict):
        for key, field in value.items():
            _short_lists(field, key)
    elif isinstance(value, list) and not (name == "snapshot-ids" and all(isinstance(item, int) for item in value)):
        if len(value) > _LONGEST_LIST:
            raise ValueError(f"{name} may have at most {_LONGEST_LIST} items")
        for item in value:
            _short_lists(item, name)


class IcebergRequest(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class CreateNamespaceRequest(IcebergRequest):
    namespace: Annotated[Names, Field(min_length=1)]
    properties: Annotated[Properties, BeforeValidator(_none_as_empty)] = {}


class UpdateNamespacePropertiesRequest(IcebergRequest):
    removals: Names = ()
    updates: Properties = {}


class CreateTableRequest(IcebergRequest):
    name: StrictStr
    location: StrictStr | None = None
    table_schema: Annotated[Schema, BeforeValidator(_a_struct)] = Field(alias="schema")
    partition_spec: dict[str, Any] | None = Field(None, alias="partition-spec")
    write_order: dict[str, Any] | None = Field(None, alias="write-order")
    stage_create: bool = Field(False, alias="stage-create")
    properties: Annotated[Properties, BeforeValidator(_none_as_empty)] = {}


class RegisterTableRequest(IcebergRequest):
    name: StrictStr
    metadata_location: StrictStr = Field(alias="metadata-location")
    overwrite: bool = False


class TableIdentifier(IcebergRequest):
    namespace: Names
    name: StrictStr


class RenameTableRequest(IcebergRequest):
    source: TableIdentifier
    destination: TableIdentifier


class CommitTableRequest(IcebergRequest):
    identifier: TableIdentifier | None = None
    requirements: Annotated[tuple[TableRequirement, ...], FailFast(), BeforeValidator(_none_as_no_items)]
    updates: Annotated[tuple[TableUpdate, ...], FailFast(), BeforeValidator(_updates)]


class CommitTransactionRequest(IcebergRequest):
    table_changes: Annotated[tuple[CommitTableRequest, ...], FailFast()] = Field(alias="table-changes")


class ReportMetricsRequest(IcebergRequest):
    report_type: StrictStr = Field(alias="report-type")
