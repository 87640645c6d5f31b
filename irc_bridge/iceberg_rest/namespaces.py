"""Namespaces. The tables of a catalog's root appear in a namespace of their own, which no request can change."""

import logging
from typing import Any

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Levels, Page, PageRequest
from irc_bridge.catalog.ports import CanChangeNamespaces
from irc_bridge.errors import (
    InvalidInput,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    Unprocessable,
    Unsupported,
)
from irc_bridge.iceberg_rest import replies
from irc_bridge.iceberg_rest.calls import IcebergCall
from irc_bridge.iceberg_rest.requests import CreateNamespaceRequest, UpdateNamespacePropertiesRequest

log = logging.getLogger("irc_bridge.iceberg_rest")


def list_namespaces(call: IcebergCall) -> Response:
    page = _children(call, call.parent)
    return replies.page("namespaces", [[*call.parent, name] for name in page.items], page)


def create_namespace(call: IcebergCall) -> Response:
    request = call.read(CreateNamespaceRequest)
    namespace = request.namespace
    if call.is_root(namespace):
        raise NamespaceAlreadyExists(f"Namespace already exists: {names.dotted(namespace)}")
    if call.is_root(namespace[:1]):
        raise InvalidInput(
            f"Namespace {namespace[0]} holds the tables of the root and can have no children: "
            f"{names.dotted(namespace)}"
        )
    call.able(CanChangeNamespaces).create_namespace(namespace, request.properties)
    return _described(call, namespace)


def load_namespace(call: IcebergCall) -> Response:
    return _described(call, call.namespace)


def namespace_exists(call: IcebergCall) -> Response:
    if not call.catalog.namespace_exists(call.to_catalog(call.namespace)):
        raise NamespaceNotFound(f"Namespace does not exist: {names.dotted(call.namespace)}")
    return replies.no_content()


def drop_namespace(call: IcebergCall) -> Response:
    namespace = call.namespace
    if call.is_root(namespace):
        raise InvalidInput(f"Namespace {namespace[0]} holds the tables of the root and cannot be dropped")
    if not isinstance(call.catalog, CanChangeNamespaces):
        raise NamespaceNotFound(f"Namespace does not exist: {names.dotted(namespace)}")
    call.catalog.drop_namespace(call.to_catalog(namespace))
    return replies.no_content()


def update_properties(call: IcebergCall) -> Response:
    request = call.read(UpdateNamespacePropertiesRequest)
    both = sorted(set(request.removals) & set(request.updates))
    if both:
        raise Unprocessable(f"Keys stand in both removals and updates: {', '.join(both)}")
    namespace = call.namespace
    if call.is_root(namespace):
        raise Unsupported(f"Namespace {namespace[0]} holds the tables of the root and has no properties")
    changes = call.able(CanChangeNamespaces).update_namespace_properties(
        call.to_catalog(namespace), frozenset(request.removals), request.updates
    )
    return replies.ok(
        {
            "updated": list(changes.updated),
            "removed": list(changes.removed),
            "missing": list(changes.missing),
        }
    )


def _described(call: IcebergCall, namespace: Levels) -> Response:
    content: dict[str, Any] = {"namespace": list(namespace)}
    content["properties"] = dict(call.catalog.load_namespace(call.to_catalog(namespace)))
    return replies.ok(content)


def _children(call: IcebergCall, parent: Levels) -> Page[str]:
    root = call.warehouse.root_namespace
    if root is not None and parent == (root,):
        return Page(())
    page = call.catalog.list_namespaces(call.to_catalog(parent), call.page)
    if root is None or parent:
        return page
    if root in page.items:
        log.warning(
            "warehouse %s: namespace %s is hidden by root_namespace = %r; set another root_namespace to see it",
            call.warehouse.name, root, root,
        )  # fmt: skip
    return _with_name(page, root, call.page)


def _with_name(page: Page[str], name: str, request: PageRequest) -> Page[str]:
    """The page with `name` at its place among the names of the listing."""
    before = request.after is not None and name <= request.after
    behind = page.more and name > page.items[-1]
    if before or behind:
        return page
    items = tuple(sorted({*page.items, name}))
    if request.limit is None or len(items) <= request.limit:
        return Page(items, page.more)
    return Page(items[: request.limit], True)
