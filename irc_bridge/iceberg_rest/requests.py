"""Request bodies that pyiceberg has no model for as a server reads them."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr
from pyiceberg.schema import Schema
from pyiceberg.table.update import TableRequirement, TableUpdate

Properties = dict[StrictStr, StrictStr]


def _none_as_empty(value: Any) -> Any:
    return {} if value is None else value


def _a_struct(value: Any) -> Any:
    """pyiceberg would take anything without fields for a schema that has none."""
    if not isinstance(value, dict) or value.get("type") != "struct" or "fields" not in value:
        raise ValueError("a schema is an object with the type struct and fields")
    return value


def _texts(value: Any) -> None:
    for key, each in value.items() if isinstance(value, dict) else ():
        if not isinstance(each, str):
            raise ValueError(f"the value of {key} must be a string")


def _updates(value: Any) -> Any:
    """What pyiceberg lets pass: a schema without fields, and numbers where texts are wanted."""
    for update in value if isinstance(value, list) else ():
        if isinstance(update, dict) and update.get("action") == "add-schema":
            _a_struct(update.get("schema"))
        if isinstance(update, dict) and update.get("action") == "set-properties":
            _texts(update.get("updates"))
    return value


class Request(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class CreateNamespaceRequest(Request):
    namespace: Annotated[tuple[StrictStr, ...], Field(min_length=1)]
    properties: Annotated[Properties, BeforeValidator(_none_as_empty)] = {}


class UpdateNamespacePropertiesRequest(Request):
    removals: tuple[StrictStr, ...] = ()
    updates: Properties = {}


class CreateTableRequest(Request):
    name: StrictStr
    location: StrictStr | None = None
    table_schema: Annotated[Schema, BeforeValidator(_a_struct)] = Field(alias="schema")
    partition_spec: dict[str, Any] | None = Field(None, alias="partition-spec")
    write_order: dict[str, Any] | None = Field(None, alias="write-order")
    stage_create: bool = Field(False, alias="stage-create")
    properties: Annotated[Properties, BeforeValidator(_none_as_empty)] = {}


class RegisterTableRequest(Request):
    name: StrictStr
    metadata_location: StrictStr = Field(alias="metadata-location")
    overwrite: bool = False


class TableIdentifier(Request):
    namespace: tuple[StrictStr, ...]
    name: StrictStr


class RenameTableRequest(Request):
    source: TableIdentifier
    destination: TableIdentifier


class CommitTableRequest(Request):
    identifier: TableIdentifier | None = None
    requirements: tuple[TableRequirement, ...]
    updates: Annotated[tuple[TableUpdate, ...], BeforeValidator(_updates)]


class CommitTransactionRequest(Request):
    table_changes: tuple[CommitTableRequest, ...] = Field(alias="table-changes")


class ReportMetricsRequest(Request):
    report_type: StrictStr = Field(alias="report-type")
