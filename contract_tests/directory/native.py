"""pylance's own DirectoryNamespace, spoken to in the words of the tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lance_namespace as ln
import pyarrow as pa
from lance.namespace import DirectoryNamespace

from contract_tests.directory.opened import MODES, SCHEMA, Directory, rows
from irc_bridge.catalog.models import Levels

NO_PROPERTIES: Mapping[str, str] = {}


class Native:
    def __init__(self, mode: str, root: Path) -> None:
        flags = {key: str(value).lower() for key, value in MODES[mode].items()}
        self.namespace = DirectoryNamespace(root=str(root), **flags)

    def create_namespace(self, namespace: Levels, properties: Mapping[str, str] = NO_PROPERTIES) -> None:
        request = ln.CreateNamespaceRequest(id=list(namespace), properties=dict(properties))
        self.namespace.create_namespace(request)

    def drop_namespace(self, namespace: Levels) -> None:
        self.namespace.drop_namespace(ln.DropNamespaceRequest(id=list(namespace)))

    def declare(self, table: Levels, properties: Mapping[str, str] = NO_PROPERTIES) -> str:
        request = ln.DeclareTableRequest(id=list(table), properties=dict(properties) or None)
        return str(self.namespace.declare_table(request).location)

    def create(self, table: Levels) -> str:
        request = ln.CreateTableRequest(id=list(table))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as stream:
            stream.write_table(rows(1))
        return str(self.namespace.create_table(request, sink.getvalue().to_pybytes()).location)

    def register(self, table: Levels, folder: str) -> None:
        self.namespace.register_table(ln.RegisterTableRequest(id=list(table), location=folder))

    def deregister(self, table: Levels) -> str:
        return str(self.namespace.deregister_table(ln.DeregisterTableRequest(id=list(table))).location)

    def drop(self, table: Levels) -> None:
        self.namespace.drop_table(ln.DropTableRequest(id=list(table)))

    def properties(self, namespace: Levels) -> dict[str, str]:
        request = ln.DescribeNamespaceRequest(id=list(namespace))
        properties = dict(self.namespace.describe_namespace(request).properties or {})
        # what the seeds give a column of its own, the released format keeps among the properties
        properties.pop("created_at", None)
        return properties

    def table_properties(self, table: Levels) -> dict[str, str]:
        return dict(self._describe(table).properties or {})

    def location(self, table: Levels) -> str:
        return str(self._describe(table).location)

    def namespaces(self, parent: Levels) -> list[str]:
        return sorted(self.namespace.list_namespaces(ln.ListNamespacesRequest(id=list(parent))).namespaces)

    def tables(self, namespace: Levels) -> list[str]:
        return sorted(self.namespace.list_tables(ln.ListTablesRequest(id=list(namespace))).tables)

    def _describe(self, table: Levels) -> Any:
        return self.namespace.describe_table(ln.DescribeTableRequest(id=list(table)))


def seen_by_native(native: Native, namespace: Levels = ()) -> dict[Levels, object]:
    """Everything below a namespace: the properties of namespaces, the folders of tables."""
    seen: dict[Levels, object] = {
        (*namespace, name): Path(native.location((*namespace, name))).name for name in native.tables(namespace)
    }
    for name in native.namespaces(namespace):
        child = (*namespace, name)
        seen |= {child: native.properties(child), **seen_by_native(native, child)}
    return seen


def seen_by_us(catalog: Directory, namespace: Levels = ()) -> dict[Levels, object]:
    seen: dict[Levels, object] = {}
    for name in catalog.list_tables(namespace).items:
        info = catalog.load_table((*namespace, name))
        seen[*namespace, name] = Path(info.location).name  # type: ignore[union-attr]
    for name in catalog.list_namespaces(namespace).items:
        child = (*namespace, name)
        seen |= {child: dict(catalog.load_namespace(child)), **seen_by_us(catalog, child)}
    return seen
