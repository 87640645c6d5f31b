"""LoadTable where another server keeps the table. An Iceberg table's answer goes on as it came; a Lance table's is
made from it and from the table's files. The ETag of such an answer holds the other server's, so that a client's
conditional request is one there as well."""

import base64
import binascii
import re
from dataclasses import replace
from typing import NamedTuple

from anyio import to_thread
from starlette.responses import Response

from irc_bridge.catalog.forward import ForwardRequest, ForwardResponse, Headers
from irc_bridge.http.replies import NO_STORE, SlottedReply
from irc_bridge.iceberg_rest import passed_config
from irc_bridge.iceberg_rest.loads import NO_CONFIG, cached_answer
from irc_bridge.iceberg_rest.passage import Passage
from irc_bridge.iceberg_rest.sent_on import as_it_is, from_file
from irc_bridge.iceberg_rest.table_answers import Json

_IF_NONE_MATCH = b"if-none-match"
_OURS = re.compile(r'"lance-([0-9a-f]+)-([A-Za-z0-9_=-]*)"')


class _Tag(NamedTuple):
    text: str
    ours: str
    theirs: bytes


async def load_table(passage: Passage) -> Response:
    tags = _tags(passage.call.headers.get("if-none-match", ""))
    headers = passage.asked.headers
    conditional = _with_theirs(headers, tags) if tags else headers
    answered, sent = await passage.send(replace(passage.asked, headers=conditional))
    if answered.status == 304 and tags:
        for tag in tags:
            if await _still_right(passage, sent, tag):
                return Response(status_code=304, headers={"etag": tag.text})
        answered, sent = await passage.send(replace(sent, headers=_without(headers, _IF_NONE_MATCH)))
    if answered.status != 200:
        return as_it_is(answered)
    found = await passage.loaded(answered)
    if found.lance is not None:
        found.close()
        return await _of_lance_table(passage, found.lance, answered, sent)
    return as_it_is(answered) if found.file is None else from_file(answered, found.file)


async def _of_lance_table(
    passage: Passage, loaded: Json, answered: ForwardResponse, sent: ForwardRequest
) -> Response:
    response = await passage.handled(await passage.levels(sent.path), loaded)
    if not isinstance(response, SlottedReply):
        return response
    etag = _tag(response.headers["etag"], dict(answered.headers).get(b"etag"))
    slot = passed_config.fields_beside_metadata(loaded, passage.target.behind.forwards_identity)
    if slot == NO_CONFIG:
        return response.filled(slot, {"etag": etag or response.headers["etag"]})
    # the ETag of the server that gave the credentials tells how long an answer with them is good
    headers = {"etag": etag} if etag else {}
    return response.filled(slot, {**headers, **NO_STORE})


async def _still_right(passage: Passage, sent: ForwardRequest, tag: _Tag) -> bool:
    """The server behind has nothing new. Nothing is opened to see whether the storage has."""
    known = cached_answer(passage.call, await passage.levels(sent.path))
    if known is None or known.etag.strip('"') != tag.ours:
        return False
    return await to_thread.run_sync(passage.target.behind.same_files, known.token)


def _tag(ours: str, theirs: bytes | None) -> str | None:
    if theirs is None:
        return None
    return f'"lance-{ours.strip(chr(34))}-{base64.urlsafe_b64encode(theirs).decode()}"'


def _tags(if_none_match: str) -> list[_Tag]:
    tags = []
    for match in _OURS.finditer(if_none_match):
        try:
            tags.append(_Tag(match[0], match[1], base64.b64decode(match[2], altchars=b"-_", validate=True)))
        except binascii.Error:
            continue
    return tags


def _with_theirs(headers: Headers, tags: list[_Tag]) -> Headers:
    return [*_without(headers, _IF_NONE_MATCH), (_IF_NONE_MATCH, b", ".join(tag.theirs for tag in tags))]


def _without(headers: Headers, unwanted: bytes) -> Headers:
    return [each for each in headers if each[0] != unwanted]
