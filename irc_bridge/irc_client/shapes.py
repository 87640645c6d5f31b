"""The parts of a server's answers that this project reads. Whatever has another shape is no answer."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from irc_bridge.answers import Unreadable


def _printable(text: str) -> str:
    if any(ord(each) < 32 or ord(each) == 127 for each in text):
        raise ValueError("has a control character")
    return text


Name = Annotated[str, Field(min_length=1)]
Place = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
Properties = dict[str, str]


class _Shape(BaseModel):
    """Fields of the specification have hyphens; some servers send null for those that are missing."""

    model_config = ConfigDict(
        strict=True, frozen=True, populate_by_name=False, alias_generator=lambda name: name.replace("_", "-")
    )


ShapeT = TypeVar("ShapeT", bound=_Shape)


class Reference(_Shape):
    snapshot_id: int
    type: str


class Snapshot(_Shape):
    snapshot_id: int
    manifest_list: str | None = None


class OldMetadata(_Shape):
    metadata_file: str


class Metadata(_Shape):
    table_uuid: Name
    location: Place
    properties: Properties | None = None
    refs: dict[str, Reference] | None = None
    current_snapshot_id: int | None = None
    snapshots: list[Snapshot] | None = None
    current_schema_id: int | None = None
    last_updated_ms: int | None = None
    last_sequence_number: int | None = None
    metadata_log: list[OldMetadata] | None = None


class Credential(_Shape):
    prefix: str
    config: Properties


class TableResult(_Shape):
    """A LoadTableResult or a CommitTableResponse."""

    metadata: Metadata
    metadata_location: Place | None = None
    config: Properties | None = None
    storage_credentials: list[Credential] | None = None


class Configuration(_Shape):
    defaults: dict[str, Any] | None = None
    overrides: dict[str, Any] | None = None
    endpoints: list[str] | None = None


class Namespaces(_Shape):
    namespaces: list[list[Name]] | None = None
    next_page_token: str | None = None


class Identifier(_Shape):
    namespace: list[Name]
    name: Name


class Identifiers(_Shape):
    identifiers: list[Identifier] | None = None
    next_page_token: str | None = None


class NamespaceResult(_Shape):
    properties: Properties | None = None


class ChangedProperties(_Shape):
    updated: list[str] | None = None
    removed: list[str] | None = None
    missing: list[str] | None = None


def read(shape: type[ShapeT], content: Mapping[str, Any]) -> ShapeT:
    """Unreadable names the first field that is wrong."""
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise Unreadable(
            f"has another shape than in the Iceberg REST specification: {field}: {first['msg']}"
        ) from None
