"""Namespaces, and the tables below a namespace."""

from collections.abc import Iterator
from contextlib import suppress

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Levels, PageRequest
from irc_bridge.catalog.ports import CanChangeNamespaces, CanDropTables, Catalog
from irc_bridge.errors import InvalidInput, NamespaceAlreadyExists, NamespaceNotFound, TableNotFound
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall
from irc_bridge.lance_rest.requests import CreateNamespaceRequest, DropNamespaceRequest, LanceRequest


def list_namespaces(call: LanceCall) -> Response:
    return replies.page("namespaces", call.catalog.list_namespaces(call.id, call.page))


def create_namespace(call: LanceCall) -> Response:
    request = call.read(CreateNamespaceRequest)
    mode = request.mode or "create"
    if mode not in ("create", "existok", "overwrite"):
        raise InvalidInput(f"mode must be Create, ExistOk or Overwrite: {mode}")
    _require_visible(call)
    catalog = call.able(CanChangeNamespaces)
    try:
        catalog.create_namespace(call.id, request.properties or {})
    except NamespaceAlreadyExists:
        if mode == "create":
            raise
        if mode == "overwrite":
            catalog.drop_namespace(call.id)
            catalog.create_namespace(call.id, request.properties or {})
    return _described(call)


def describe_namespace(call: LanceCall) -> Response:
    call.read(LanceRequest)
    return _described(call)


def namespace_exists(call: LanceCall) -> Response:
    call.read(LanceRequest)
    if not call.catalog.namespace_exists(call.id):
        raise NamespaceNotFound(f"Namespace does not exist: {names.dotted(call.id)}")
    return replies.empty()


def drop_namespace(call: LanceCall) -> Response:
    request = call.read(DropNamespaceRequest)
    mode, behavior = request.mode or "fail", request.behavior or "restrict"
    if mode not in ("fail", "skip"):
        raise InvalidInput(f"mode must be Fail or Skip: {mode}")
    if behavior not in ("restrict", "cascade"):
        raise InvalidInput(f"behavior must be Restrict or Cascade: {behavior}")
    catalog = call.able(CanChangeNamespaces)
    try:
        properties = call.catalog.load_namespace(call.id)
        if behavior == "cascade" and call.id:
            _empty(call, catalog)
        catalog.drop_namespace(call.id)
    except NamespaceNotFound:
        if mode == "fail":
            raise
        return replies.ok({})
    return replies.ok({"properties": dict(properties)})


def all_tables(catalog: Catalog, namespace: Levels, after: Levels = ()) -> Iterator[Levels]:
    """The tables in the namespace and in all namespaces below it, always in the same order; with `after` those
    that follow it in this order."""
    above = PageRequest(after[0]) if after else PageRequest()
    with suppress(NamespaceNotFound):
        if len(after) > 1:
            yield from all_tables(catalog, (*namespace, after[0]), after[1:])
        else:
            yield from ((*namespace, table) for table in catalog.list_tables(namespace, above).items)
        children = above if len(after) > 1 else PageRequest()
        for child in catalog.list_namespaces(namespace, children).items:
            yield from all_tables(catalog, (*namespace, child))


def _empty(call: LanceCall, catalog: CanChangeNamespaces) -> None:
    """Drops all tables below the namespace, then all namespaces, the deepest first."""
    for table in list(all_tables(call.catalog, call.id)):
        with suppress(TableNotFound):
            call.able(CanDropTables).drop_table(table)
    for namespace in reversed(list(_below(call.catalog, call.id))):
        with suppress(NamespaceNotFound):
            catalog.drop_namespace(namespace)


def _below(catalog: Catalog, namespace: Levels) -> Iterator[Levels]:
    for child in catalog.list_namespaces(namespace).items:
        yield (*namespace, child)
        yield from _below(catalog, (*namespace, child))


def _require_visible(call: LanceCall) -> None:
    root = call.warehouse.root_namespace
    if root is not None and call.id[:1] == (root,):
        raise InvalidInput(
            f"{root} is the name under which Iceberg clients see the tables of the root: choose another name"
        )


def _described(call: LanceCall) -> Response:
    return replies.ok({"properties": dict(call.catalog.load_namespace(call.id))})
