"""Models of request bodies. Fields without a use here, such as context and identity, are ignored. Validation of a
list stops at its first error: pydantic keeps all errors, and a megabyte of wrong values would make a gigabyte."""

from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
)

from irc_bridge.catalog.models import NamingScheme

_MOST_LEVELS = 1000


def _few(value: object) -> object:
    if isinstance(value, list) and len(value) > _MOST_LEVELS:
        raise ValueError(f"a name may have at most {_MOST_LEVELS} levels")
    return value


Levels = Annotated[tuple[StrictStr, ...], BeforeValidator(_few)]
Number = Annotated[StrictInt, Field(ge=0, lt=2**63)]
Properties = dict[StrictStr, StrictStr]


def one_spelling(value: str) -> str:
    """The mode in one spelling: ExistOk, exist_ok and EXIST_OK are the same."""
    return value.replace("_", "").lower()


Mode = Annotated[StrictStr, AfterValidator(one_spelling)]


class LanceRequest(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: Levels | None = None
    branch: StrictStr | None = None


class CreateNamespaceRequest(LanceRequest):
    mode: Mode | None = None
    properties: Properties | None = None


class DropNamespaceRequest(LanceRequest):
    mode: Mode | None = None
    behavior: Mode | None = None


class DeclareTableRequest(LanceRequest):
    location: StrictStr | None = None
    vend_credentials: StrictBool | None = None
    properties: Properties | None = None


class RegisterTableRequest(LanceRequest):
    location: StrictStr
    mode: Mode | None = None
    properties: Properties | None = None


class DescribeTableRequest(LanceRequest):
    version: Number | None = None
    tag: StrictStr | None = None
    with_table_uri: StrictBool | None = None
    load_detailed_metadata: StrictBool | None = None
    check_declared: StrictBool | None = None
    vend_credentials: StrictBool | None = None


class TableExistsRequest(LanceRequest):
    version: Number | None = None


class RenameTableRequest(LanceRequest):
    new_table_name: StrictStr
    new_namespace_id: Levels | None = None


class CreateTableVersionRequest(LanceRequest):
    version: Number
    manifest_path: StrictStr
    e_tag: StrictStr | None = None
    naming_scheme: NamingScheme | None = None


class CreateTableVersionEntry(CreateTableVersionRequest):
    id: Levels = Field(min_length=1)


class BatchCreateTableVersionsRequest(BaseModel):
    model_config = ConfigDict(frozen=True)

    entries: Annotated[tuple[CreateTableVersionEntry, ...], FailFast()]


class DescribeTableVersionRequest(LanceRequest):
    version: Number | None = None


class Range(BaseModel):
    model_config = ConfigDict(frozen=True)

    start_version: StrictInt
    end_version: StrictInt


class BatchDeleteTableVersionsRequest(LanceRequest):
    ranges: Annotated[tuple[Range, ...], FailFast()]
    ignore_missing: StrictBool = True


class TagRequest(LanceRequest):
    tag: StrictStr = Field(min_length=1)


class TagVersionRequest(TagRequest):
    version: Number


class CountTableRowsRequest(LanceRequest):
    version: Number | None = None
    predicate: StrictStr | None = None
