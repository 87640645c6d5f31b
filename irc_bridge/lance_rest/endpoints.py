"""The one table of endpoints. The router and the conformance test are derived from it."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from irc_bridge.errors import Unsupported
from irc_bridge.lance_rest import data, describing, namespaces, tables, tags, versions
from irc_bridge.lance_rest.calls import LanceCall

NAMESPACE = "/v1/namespace/{id}"
TABLES = "/v1/table"
TABLE = TABLES + "/{id}"
VERSIONS = TABLE + "/version"
TAGS = TABLE + "/tags"
BRANCHES = TABLE + "/branches"
INDEX = TABLE + "/index"
VIEW = "/v1/materialized_view/{id}"
TRANSACTION = "/v1/transaction/{id}"

Handler = Callable[[LanceCall], Response]


@dataclass(frozen=True, slots=True)
class LanceEndpoint:
    operation: str
    method: str
    path: str
    handler: Handler
    changes: bool = False
    takes_data: bool = False
    """Whether the body is a stream of rows."""
    threads: int = 0
    """How many `slow` calls of this operation run at the same time, in threads of their own. Further calls wait;
    other operations do not."""
    slow: Callable[[LanceCall], bool] = lambda _: True
    at_once: Callable[[LanceCall], bool] = lambda _: False
    """Whether a call takes less time than the way to a thread and back."""


def _list(operation: str, path: str, handler: Handler) -> LanceEndpoint:
    return LanceEndpoint(operation, "GET", path, handler)


def _read(operation: str, path: str, handler: Handler) -> LanceEndpoint:
    return LanceEndpoint(operation, "POST", path, handler)


def _change(operation: str, path: str, handler: Handler) -> LanceEndpoint:
    return LanceEndpoint(operation, "POST", path, handler, changes=True)


def _rows(operation: str, path: str) -> LanceEndpoint:
    """An operation on rows, which Lance does in the client's own process."""
    return LanceEndpoint(operation, "POST", path, _refuse_rows)


def _absent(operation: str, path: str) -> LanceEndpoint:
    return LanceEndpoint(operation, "POST", path, _refuse)


def _refuse_rows(call: LanceCall) -> Response:
    raise Unsupported(
        f"{call.http.operation} is not done by this server: open the table with pylance and do it there, by "
        f"lance.dataset(namespace_client=..., table_id=...) or at the location that DescribeTable tells"
    )


def _refuse(call: LanceCall) -> Response:
    raise Unsupported(f"{call.http.operation} is not supported: this server keeps no such things")


ENDPOINTS = (
    _list("ListNamespaces", NAMESPACE + "/list", namespaces.list_namespaces),
    _change("CreateNamespace", NAMESPACE + "/create", namespaces.create_namespace),
    _read("DescribeNamespace", NAMESPACE + "/describe", namespaces.describe_namespace),
    _change("DropNamespace", NAMESPACE + "/drop", namespaces.drop_namespace),
    _read("NamespaceExists", NAMESPACE + "/exists", namespaces.namespace_exists),
    _list("ListTables", NAMESPACE + "/table/list", tables.list_tables),
    _list("ListAllTables", TABLES, tables.list_all_tables),
    _change("DeclareTable", TABLE + "/declare", tables.declare_table),
    LanceEndpoint(
        "CreateTable", "POST", TABLE + "/create", data.create_table, changes=True, takes_data=True, threads=4
    ),
    _change("RegisterTable", TABLE + "/register", tables.register_table),
    _read("DescribeTable", TABLE + "/describe", describing.describe_table),
    _read("TableExists", TABLE + "/exists", describing.table_exists),
    _change("DropTable", TABLE + "/drop", tables.drop_table),
    _change("DeregisterTable", TABLE + "/deregister", tables.deregister_table),
    _change("RenameTable", TABLE + "/rename", tables.rename_table),
    LanceEndpoint(
        "CountTableRows", "POST", TABLE + "/count_rows", data.count_table_rows, threads=4, slow=data.has_predicate
    ),
    _read("GetTableStats", TABLE + "/stats", data.get_table_stats),
    _change("UpdateTableSchemaMetadata", TABLE + "/schema_metadata/update", data.update_table_schema_metadata),
    _read("ListTableVersions", VERSIONS + "/list", versions.list_table_versions),
    LanceEndpoint(
        "CreateTableVersion",
        "POST",
        VERSIONS + "/create",
        versions.create_table_version,
        changes=True,
        at_once=versions.is_made_at_once,
    ),
    _read("DescribeTableVersion", VERSIONS + "/describe", versions.describe_table_version),
    _change("BatchDeleteTableVersions", VERSIONS + "/delete", versions.batch_delete_table_versions),
    _change("BatchCreateTableVersions", TABLES + "/version/batch-create", versions.batch_create_table_versions),
    _read("ListTableTags", TAGS + "/list", tags.list_table_tags),
    _read("GetTableTagVersion", TAGS + "/version", tags.get_table_tag_version),
    _change("CreateTableTag", TAGS + "/create", tags.create_table_tag),
    _change("UpdateTableTag", TAGS + "/update", tags.update_table_tag),
    _change("DeleteTableTag", TAGS + "/delete", tags.delete_table_tag),
    _rows("QueryTable", TABLE + "/query"),
    _rows("ExplainTableQueryPlan", TABLE + "/explain_plan"),
    _rows("AnalyzeTableQueryPlan", TABLE + "/analyze_plan"),
    _rows("InsertIntoTable", TABLE + "/insert"),
    _rows("MergeInsertIntoTable", TABLE + "/merge_insert"),
    _rows("UpdateTable", TABLE + "/update"),
    _rows("DeleteFromTable", TABLE + "/delete"),
    _rows("RestoreTable", TABLE + "/restore"),
    _rows("AlterTableAddColumns", TABLE + "/add_columns"),
    _rows("AlterTableAlterColumns", TABLE + "/alter_columns"),
    _rows("AlterTableDropColumns", TABLE + "/drop_columns"),
    _rows("AlterTableBackfillColumns", TABLE + "/backfill_column"),
    _rows("UpdateFieldMetadata", TABLE + "/update_field_metadata"),
    _rows("CreateTableIndex", TABLE + "/create_index"),
    _rows("CreateTableScalarIndex", TABLE + "/create_scalar_index"),
    _rows("ListTableIndices", INDEX + "/list"),
    _rows("DescribeTableIndexStats", INDEX + "/{index_name}/stats"),
    _rows("DropTableIndex", INDEX + "/{index_name}/drop"),
    _rows("ListTableBranches", BRANCHES + "/list"),
    _rows("CreateTableBranch", BRANCHES + "/create"),
    _rows("DeleteTableBranch", BRANCHES + "/delete"),
    _absent("BatchCommitTables", TABLES + "/batch-commit"),
    _absent("DescribeTransaction", TRANSACTION + "/describe"),
    _absent("AlterTransaction", TRANSACTION + "/alter"),
    _absent("CreateMaterializedView", VIEW + "/create"),
    _absent("RefreshMaterializedView", VIEW + "/refresh"),
)
