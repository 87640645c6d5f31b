"""LoadTable of a table that another server keeps. The client gets the response for an Iceberg table unchanged. For
a Lance table the response is made from it and from the table's files. The ETag of such a response contains the
ETag of the other server, so that a client's conditional request is conditional there too."""

import base64
import binascii
import re
from dataclasses import replace
from typing import NamedTuple

from anyio import to_thread
from starlette.responses import Response

from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse, Headers
from irc_bridge.http.replies import NO_STORE, SlottedReply
from irc_bridge.iceberg_rest.forward.config import fields_beside_metadata
from irc_bridge.iceberg_rest.forward.request import Forwarding
from irc_bridge.iceberg_rest.forward.responses import client_response, file_response
from irc_bridge.iceberg_rest.forward.strict_json import Json
from irc_bridge.iceberg_rest.loads import NO_CONFIG, cached_answer

_IF_NONE_MATCH = b"if-none-match"
_LANCE_TAG = re.compile(r'"lance-([0-9a-f]+)-([A-Za-z0-9_=-]*)"')


class _Tag(NamedTuple):
    """The ETag of a Lance table: `text` is made of the bridge's own ETag and of the other server's."""

    text: str
    ours: str
    theirs: bytes


async def load_table(forwarding: Forwarding) -> Response:
    tags = _tags(forwarding.call.http.headers.get("if-none-match", ""))
    headers = forwarding.request.headers
    conditional = _with_theirs(headers, tags) if tags else headers
    response, sent = await forwarding.send(replace(forwarding.request, headers=conditional))
    if response.status == 304 and tags:
        for tag in tags:
            if await _is_current(forwarding, sent, tag):
                return Response(status_code=304, headers={"etag": tag.text})
        response, sent = await forwarding.send(replace(sent, headers=_without(headers, _IF_NONE_MATCH)))
    if response.status != 200:
        return client_response(response)
    loaded = await forwarding.load_response(response)
    if loaded.lance is not None:
        loaded.close()
        return await _lance_table(forwarding, loaded.lance, response, sent)
    return client_response(response) if loaded.file is None else file_response(response, loaded.file)


async def _lance_table(
    forwarding: Forwarding, result: Json, response: ForwardResponse, sent: ForwardRequest
) -> Response:
    reply = await forwarding.handle(await forwarding.levels(sent.path), result)
    if not isinstance(reply, SlottedReply):
        return reply
    etag = _tag(reply.headers["etag"], dict(response.headers).get(b"etag"))
    slot = fields_beside_metadata(result, forwarding.target.behind.forwards_identity)
    if slot == NO_CONFIG:
        return reply.filled(slot, {"etag": etag or reply.headers["etag"]})
    # the ETag of the server that gave the credentials tells how long an answer with them is good
    return reply.filled(slot, {**({"etag": etag} if etag else {}), **NO_STORE})


async def _is_current(forwarding: Forwarding, sent: ForwardRequest, tag: _Tag) -> bool:
    """Whether the storage has nothing new either, after the server behind had nothing new. Opens no table."""
    cached = cached_answer(forwarding.call, await forwarding.levels(sent.path))
    if cached is None or cached.etag.strip('"') != tag.ours:
        return False
    return await to_thread.run_sync(forwarding.target.behind.same_files, cached.token)


def _tag(ours: str, theirs: bytes | None) -> str | None:
    if theirs is None:
        return None
    return f'"lance-{ours.strip(chr(34))}-{base64.urlsafe_b64encode(theirs).decode()}"'


def _tags(if_none_match: str) -> list[_Tag]:
    tags = []
    for match in _LANCE_TAG.finditer(if_none_match):
        try:
            tags.append(_Tag(match[0], match[1], base64.b64decode(match[2], altchars=b"-_", validate=True)))
        except binascii.Error:
            continue
    return tags


def _with_theirs(headers: Headers, tags: list[_Tag]) -> Headers:
    return [*_without(headers, _IF_NONE_MATCH), (_IF_NONE_MATCH, b", ".join(tag.theirs for tag in tags))]


def _without(headers: Headers, name: bytes) -> Headers:
    return [header for header in headers if header[0] != name]
