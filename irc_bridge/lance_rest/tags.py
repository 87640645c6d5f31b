"""Tags of a table."""

from starlette.responses import Response

from irc_bridge import names
from irc_bridge.catalog.models import Commit, History, Levels, TableInfo
from irc_bridge.catalog.ports import CanCommit, CanKeepVersions
from irc_bridge.errors import TagAlreadyExists, TagNotFound
from irc_bridge.lance_rest import replies
from irc_bridge.lance_rest.calls import LanceCall
from irc_bridge.lance_rest.requests import LanceRequest, TagRequest, TagVersionRequest


def list_table_tags(call: LanceCall) -> Response:
    call.read(LanceRequest)
    info, after, limit = _table(call), call.after, call.limit
    rest = sorted(name for name in info.tags if after is None or name > after)
    shown = rest[:limit]
    sizes = _sizes(call, {info.tags[name] for name in shown})
    tags = {name: {"version": info.tags[name], "manifestSize": sizes[info.tags[name]]} for name in shown}
    more = shown and len(rest) > len(shown)
    return replies.ok({"tags": tags, "page_token": names.page_token(shown[-1]) if more else None})


def get_table_tag_version(call: LanceCall) -> Response:
    request = call.read(TagRequest)
    return replies.ok({"version": version_of_tag(call.table, _table(call), request.tag)})


def create_table_tag(call: LanceCall) -> Response:
    request = call.read(TagVersionRequest)
    _require_version(call, request.version)

    def decide(info: TableInfo) -> Commit:
        if request.tag in info.tags:
            raise TagAlreadyExists(f"Tag {request.tag} of {names.dotted(call.table)} already exists")
        return Commit(set_tags={request.tag: request.version})

    call.able(CanCommit).commit(call.table, decide)
    return replies.ok({})


def update_table_tag(call: LanceCall) -> Response:
    request = call.read(TagVersionRequest)
    _require_version(call, request.version)

    def decide(info: TableInfo) -> Commit:
        version_of_tag(call.table, info, request.tag)
        return Commit(set_tags={request.tag: request.version})

    call.able(CanCommit).commit(call.table, decide)
    return replies.ok({})


def delete_table_tag(call: LanceCall) -> Response:
    request = call.read(TagRequest)

    def decide(info: TableInfo) -> Commit:
        version_of_tag(call.table, info, request.tag)
        return Commit(remove_tags=frozenset({request.tag}))

    call.able(CanCommit).commit(call.table, decide)
    return replies.ok({})


def version_of_tag(table: Levels, info: TableInfo, tag: str) -> int:
    if tag not in info.tags:
        raise TagNotFound(f"{names.dotted(table)} has no tag {tag}")
    return info.tags[tag]


def _table(call: LanceCall) -> TableInfo:
    info = call.catalog.load_table(call.table, History.HEADS)
    assert isinstance(info, TableInfo)
    return info


def _require_version(call: LanceCall, version: int) -> None:
    call.able(CanKeepVersions).describe_table_version(call.table, version)


def _sizes(call: LanceCall, versions: set[int]) -> dict[int, int]:
    """The sizes of the manifests of these versions."""
    if not versions:
        return {}
    records = call.able(CanKeepVersions).list_table_versions(call.table, descending=False, after=min(versions) - 1)
    return {record.version: record.manifest_size for record in records.items}
