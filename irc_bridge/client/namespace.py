"""A Lance namespace over an Iceberg REST catalog: over irc-bridge, or over a server that never heard of Lance.

The server is the root namespace. Identifiers are those of Iceberg, one to one, so a table has two levels or more.
"""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import lance_namespace as ln

from irc_bridge.backends.upstream import listing
from irc_bridge.backends.upstream.files import Files, from_store_root
from irc_bridge.backends.upstream.tables import Tables
from irc_bridge.backends.upstream.versions import Versions
from irc_bridge.catalog.models import VersionRecord
from irc_bridge.client.properties import Properties, read_properties
from irc_bridge.client.request_fields import (
    RequestFields,
    lance_error,
    new_version,
    number_of,
    operation,
    version_range,
)
from irc_bridge.client.tags import Tags
from irc_bridge.errors import (
    BridgeError,
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotFound,
)
from irc_bridge.irc_client.lance_tables import LanceTable
from irc_bridge.names import identifier

_SALT = os.urandom(16)


class IcebergRestNamespace(ln.LanceNamespace):
    """Properties: `uri`, `warehouse`, `prefix`; `token`, or `credential` (`id:secret`) with `oauth2-server-uri`
    and `scope`; `header.*`; `connect_timeout`, `read_timeout` (seconds); `storage.*` (Lance's storage options);
    `root` (tables are declared below it); `managed_by` (of new tables: `storage` or `impl`); `delimiter`."""

    def __init__(self, **properties: str) -> None:
        try:
            self._properties: Properties = read_properties(properties)
            self._server = self._properties.open_server()
        except BridgeError as error:
            raise lance_error(error) from error
        given = self._properties
        self._tables = Tables(
            self._server, Files(allowed_locations=None), given.storage, given.root, given.managed_by
        )
        self._versions = Versions(self._tables)
        self._tags = Tags(self._tables, self._versions)

    def __reduce__(self) -> tuple[Callable[[], "IcebergRestNamespace"], tuple[()]]:
        return partial(type(self), **self._properties.given), ()

    def __repr__(self) -> str:
        return self.namespace_id()

    def namespace_id(self) -> str:
        """Equal for namespaces that are the same to the same user: pylance shares credentials among them."""
        given = self._properties.given
        who = hashlib.blake2b(repr(sorted(given.items())).encode(), key=_SALT, digest_size=6).hexdigest()
        where = f"uri: {given['uri']!r}, warehouse: {given.get('warehouse')!r}"
        return f"IcebergRestNamespace {{ {where}, as: {who} }}"

    @operation
    def list_namespaces(self, request: Any) -> ln.ListNamespacesResponse:
        fields = RequestFields(request)
        ask = partial(self._server.list_namespaces, fields.namespace)
        names, token = listing.page(ask, fields.get("page_token"), fields.get("limit"))
        return ln.ListNamespacesResponse(namespaces=names, page_token=token)

    @operation
    def describe_namespace(self, request: Any) -> ln.DescribeNamespaceResponse:
        return ln.DescribeNamespaceResponse(properties=self._namespace_properties(RequestFields(request)))

    @operation
    def create_namespace(self, request: Any) -> ln.CreateNamespaceResponse:
        fields = RequestFields(request)
        if not fields.namespace:
            raise NamespaceAlreadyExists("The root namespace is the server itself: it is there already")
        mode = fields.mode("mode", "create", "existok")
        try:
            made = self._server.create_namespace(fields.namespace, fields.properties)
        except NamespaceAlreadyExists:
            if mode == "create":
                raise
            return ln.CreateNamespaceResponse(properties=self._namespace_properties(fields))
        return ln.CreateNamespaceResponse(properties=made.get("properties") or {})

    @operation
    def drop_namespace(self, request: Any) -> ln.DropNamespaceResponse:
        fields = RequestFields(request)
        fields.mode("behavior", "restrict")
        if not fields.namespace:
            raise InvalidInput("The root namespace is the server itself: it cannot be dropped")
        try:
            self._server.drop_namespace(fields.namespace)
        except NamespaceNotFound:
            if fields.mode("mode", "fail", "skip") == "fail":
                raise
        return ln.DropNamespaceResponse()

    @operation
    def namespace_exists(self, request: Any) -> ln.NamespaceExistsResponse:
        self._namespace_properties(RequestFields(request))
        return ln.NamespaceExistsResponse()

    @operation
    def list_tables(self, request: Any) -> ln.ListTablesResponse:
        """No request for each table: where a server keeps Iceberg tables beside Lance tables, their names are
        listed too. `include_declared=False` asks for each table and leaves out those that are no Lance tables or
        have no version."""
        fields = RequestFields(request)
        if not fields.namespace:
            return ln.ListTablesResponse(tables=[])
        ask = partial(self._server.list_tables, fields.namespace)
        names, token = listing.page(ask, fields.get("page_token"), fields.get("limit"))
        if fields.get("include_declared") is False:
            names = [name for name in names if self._versions.has_any((*fields.namespace, name))]
        return ln.ListTablesResponse(tables=names, page_token=token)

    @operation
    def list_all_tables(self, request: Any) -> ln.ListTablesResponse:
        """Names with the delimiter between their levels."""
        fields = RequestFields(request)
        tables = listing.all_tables(self._server)
        if fields.get("include_declared") is False:
            tables = [table for table in tables if self._versions.has_any(table)]
        names = [identifier(table, self._properties.delimiter) for table in tables]
        names, token = listing.cut_after(names, fields.get("page_token"), fields.get("limit"))
        return ln.ListTablesResponse(tables=names, page_token=token)

    @operation
    def declare_table(self, request: Any) -> ln.DeclareTableResponse:
        fields = RequestFields(request)
        declared = self._tables.declare(fields.table, fields.get("location"), fields.properties)
        return ln.DeclareTableResponse(
            location=declared.location,
            storage_options=self._options(fields, declared),
            properties=dict(declared.properties),
            managed_versioning=declared.by_catalog,
        )

    @operation
    def register_table(self, request: Any) -> ln.RegisterTableResponse:
        fields = RequestFields(request)
        fields.mode("mode", "create")
        registered = self._tables.register(fields.table, fields["location"], fields.properties)
        return ln.RegisterTableResponse(location=registered.location, properties=dict(registered.properties))

    @operation
    def describe_table(self, request: Any) -> ln.DescribeTableResponse:
        fields = RequestFields(request)
        found = self._tables.load(fields.table, delegate=fields.get("vend_credentials") is not False)
        details = bool(fields.get("load_detailed_metadata"))
        wanted = fields.get("version")
        if fields.get("tag"):
            wanted = self._tags.version(fields.table, fields["tag"])
        version = wanted
        if wanted is not None:
            self._versions.describe(fields.table, wanted)
        elif found.by_catalog or found.knows_lance:
            version = found.latest
        elif details or fields.get("check_declared"):
            version = self._tables.files(found).newest()
        return ln.DescribeTableResponse(
            table=fields.table[-1] if details else None,
            namespace=list(fields.table[:-1]) if details else None,
            version=version,
            location=found.location,
            table_uri=found.location if fields.get("with_table_uri") else None,
            storage_options=self._options(fields, found),
            properties=dict(found.properties),
            managed_versioning=found.by_catalog,
            is_only_declared=version is None if fields.get("check_declared") else None,
        )

    @operation
    def table_exists(self, request: Any) -> ln.TableExistsResponse:
        fields = RequestFields(request)
        if fields.get("version") is None:
            self._tables.load(fields.table, delegate=False)
        else:
            self._versions.describe(fields.table, fields["version"])
        return ln.TableExistsResponse()

    @operation
    def drop_table(self, request: Any) -> ln.DropTableResponse:
        table = RequestFields(request).table
        gone = self._tables.drop(table, purge=True)
        return ln.DropTableResponse(id=list(table), location=gone.location, properties=dict(gone.properties))

    @operation
    def deregister_table(self, request: Any) -> ln.DeregisterTableResponse:
        table = RequestFields(request).table
        gone = self._tables.drop(table, purge=False)
        return ln.DeregisterTableResponse(id=list(table), location=gone.location, properties=dict(gone.properties))

    @operation
    def rename_table(self, request: Any) -> ln.RenameTableResponse:
        fields = RequestFields(request)
        namespace = tuple(fields.get("new_namespace_id") or fields.table[:-1])
        self._tables.rename(fields.table, (*namespace, fields["new_table_name"]))
        return ln.RenameTableResponse()

    @operation
    def list_table_versions(self, request: Any) -> ln.ListTableVersionsResponse:
        fields = RequestFields(request)
        limit, after = fields.get("limit"), number_of(fields.get("page_token"))
        if limit is not None and limit < 1:
            raise InvalidInput(f"limit must be 1 or more: {limit}")
        page = self._versions.list(fields.table, bool(fields.get("descending")), after, limit)
        token = str(page.items[-1].version) if page.more and page.items else None
        return ln.ListTableVersionsResponse(versions=[_wire(each) for each in page.items], page_token=token)

    @operation
    def describe_table_version(self, request: Any) -> ln.DescribeTableVersionResponse:
        fields = RequestFields(request)
        found = self._versions.describe(fields.table, fields.get("version"))
        return ln.DescribeTableVersionResponse(version=_wire(found))

    @operation
    def create_table_version(self, request: Any) -> ln.CreateTableVersionResponse:
        return ln.CreateTableVersionResponse(version=_wire(self._versions.create(new_version(request))))

    @operation
    def batch_create_table_versions(self, request: Any) -> ln.BatchCreateTableVersionsResponse:
        made = self._versions.create_all([new_version(each) for each in RequestFields(request)["entries"]])
        return ln.BatchCreateTableVersionsResponse(versions=[_wire(each) for each in made])

    @operation
    def batch_delete_table_versions(self, request: Any) -> ln.BatchDeleteTableVersionsResponse:
        fields = RequestFields(request)
        count = self._versions.delete(fields.table, [version_range(each) for each in fields["ranges"]])
        return ln.BatchDeleteTableVersionsResponse(deleted_count=count)

    @operation
    def list_table_tags(self, request: Any) -> ln.ListTableTagsResponse:
        fields = RequestFields(request)
        tags = self._tags.list(fields.table)
        names, token = listing.cut_after(list(tags), fields.get("page_token"), fields.get("limit"))
        contents: Any = {name: {"version": tags[name][0], "manifestSize": tags[name][1]} for name in names}
        return ln.ListTableTagsResponse(tags=contents, page_token=token)

    @operation
    def get_table_tag_version(self, request: Any) -> ln.GetTableTagVersionResponse:
        fields = RequestFields(request)
        return ln.GetTableTagVersionResponse(version=self._tags.version(fields.table, fields["tag"]))

    @operation
    def create_table_tag(self, request: Any) -> ln.CreateTableTagResponse:
        fields = RequestFields(request)
        self._tags.create(fields.table, fields["tag"], fields["version"])
        return ln.CreateTableTagResponse()

    @operation
    def update_table_tag(self, request: Any) -> ln.UpdateTableTagResponse:
        fields = RequestFields(request)
        self._tags.update(fields.table, fields["tag"], fields["version"])
        return ln.UpdateTableTagResponse()

    @operation
    def delete_table_tag(self, request: Any) -> ln.DeleteTableTagResponse:
        fields = RequestFields(request)
        self._tags.delete(fields.table, fields["tag"])
        return ln.DeleteTableTagResponse()

    def _namespace_properties(self, fields: RequestFields) -> dict[str, str]:
        if not fields.namespace:
            return {}
        return dict(self._server.load_namespace(fields.namespace).get("properties") or {})

    def _options(self, fields: RequestFields, table: LanceTable) -> dict[str, str] | None:
        if fields.get("vend_credentials") is False:
            return dict(self._properties.storage) or None
        return self._tables.options(table) or None


def _wire(record: VersionRecord) -> ln.TableVersion:
    return ln.TableVersion(
        version=record.version,
        manifest_path=from_store_root(record.manifest_path),
        manifest_size=record.manifest_size,
        e_tag=record.e_tag,
        timestamp_millis=record.timestamp_ms,
        metadata=dict(record.metadata) or None,
    )
