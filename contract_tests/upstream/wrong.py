"""Answers that a server must not give, and how each of the bridge's requests comes to hear one."""

import gzip
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from contract_tests.upstream.faulty import Reply
from contract_tests.upstream.replies import JSON, answer, trickle

OK = b"HTTP/1.1 200 OK\r\n"
ELSEWHERE = "http://user:pass@elsewhere.invalid/v1"
BOMB = gzip.compress(b" " * 8_000_000) * 100
"""800 MB in 0.8 MB."""


def encoded(content: bytes, encoding: str) -> Reply:
    return answer(200, content, [*JSON, ("Content-Encoding", encoding)])


def closed(content: bytes) -> Reply:
    def reply(wire: Any) -> None:
        wire.send(content)
        wire.close()

    return reply


def flood(piece: bytes) -> Reply:
    """Without an end, until nobody listens."""

    def reply(wire: Any) -> None:
        while True:
            wire.send(piece * 1000)

    return reply


def started(head: bytes, then: Reply) -> Reply:
    def reply(wire: Any) -> None:
        wire.send(head)
        then(wire)

    return reply


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WIRE: dict[str, Reply] = {
    "two lengths": closed(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    "a length that is none": closed(OK + b"Content-Length: -2\r\n\r\n{}"),
    "a length beyond all": closed(OK + b"Content-Length: 99999999999999999999999\r\n\r\n{}"),
    "a length and chunks": closed(OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
    "a chunk size that is none": closed(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    "a chunk size beyond all": closed(CHUNKED + b"ffffffffffffffffffff\r\n{}\r\n"),
    "a negative chunk size": closed(CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n"),
    "no last chunk": closed(CHUNKED + b"2\r\n{}\r\n"),
    "another transfer encoding": closed(OK + b"Transfer-Encoding: gzip\r\n\r\n{}"),
    "half of it": closed(OK + b"Content-Length: 100\r\n\r\n{}"),
    "no such status": closed(b"HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\n{}"),
    "status zero": closed(b"HTTP/1.1 000 Odd\r\nContent-Length: 2\r\n\r\n{}"),
    "early hints and no more": closed(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "another protocol": closed(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n{}"),
    "early hints without an end": flood(b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "go on without an end": flood(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers without an end": started(OK, flood(b"X: y\r\n")),
    "a header without an end": started(OK + b"X: ", flood(b"yyyy")),
    "a chunk extension without an end": started(CHUNKED + b"2;x=", flood(b"yyyy")),
    "a line that is no header": closed(OK + b"nonsense\r\nContent-Length: 2\r\n\r\n{}"),
    "another version": closed(b"HTTP/9.9 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "not HTTP": closed(b"SSH-2.0-OpenSSH\r\n\r\n"),
    "a redirect": answer(307, b"", [("Location", ELSEWHERE)]),
    "another redirect": answer(301, b"{}", [*JSON, ("Location", ELSEWHERE)]),
    "a trickle": trickle(b" " * 1000, 0.2),
}
"""Wrong as HTTP, whatever was asked for."""

ENCODED: dict[str, Reply] = {
    "brotli": encoded(b"\x0b\x00\x80{}\x03", "br"),
    "zstandard": encoded(b"(\xb5/\xfd", "zstd"),
    "an unknown encoding": encoded(b"{}", "rot13"),
    "two encodings": encoded(gzip.compress(gzip.compress(b"{}")), "gzip, gzip"),
    "gzip that is none": encoded(b"{}", "gzip"),
    "half of gzip": encoded(gzip.compress(b"{}" * 5000)[:-9], "gzip"),
    "gzip and more": encoded(gzip.compress(b"{}") + b"more", "gzip"),
    "a bomb": encoded(BOMB, "gzip"),
    "a large bomb": encoded(BOMB * 3, "gzip"),
}
"""Wrong for who reads what is in it."""

DEEP = b"[" * 100_000
NO_JSON: dict[str, bytes] = {
    "html": b"<html>Sign in</html>",
    "half of JSON": b'{"metadata": {"properties": {"table_type": "lance"',
    "JSON and more": b'{"metadata": {"properties": {"table_type": "lance"}}} {}',
    "not UTF-8": b'{"metadata": {"properties": {"table_type": "lance", "a": "\xff"}}}',
    "UTF-16": '{"metadata": {"properties": {"table_type": "lance"}}}'.encode("utf-16"),
    "half a surrogate pair": b'{"a": "\\ud800", "metadata": {"properties": {"table_type": "lance"}}}',
    "deep": b'{"metadata": {"properties": {"table_type": "lance"}}, "a": ' + DEEP + b"]" * 100_000 + b"}",
    "deep and no more": b'{"metadata": {"properties": {"table_type": "lance"}}, "a": ' + DEEP,
    "a number beyond all": b'{"metadata": {"properties": {"table_type": "lance"}}, "a": ' + b"9" * 5000 + b"}",
    "no number": b'{"metadata": {"properties": {"table_type": "lance"}}, "a": NaN}',
    "infinite": b'{"metadata": {"properties": {"table_type": "lance"}}, "a": 1e999}',
}
NO_OBJECT: dict[str, bytes] = {
    "a list": b"[]",
    "a list of objects": b'[{"metadata": {"properties": {"table_type": "lance"}}}]',
    "null": b"null",
    "a text": b'"table_type"',
    "a number": b"1",
}


def _changed(path: tuple[str, ...], value: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(result: dict[str, Any]) -> dict[str, Any]:
        where = result
        for each in path[:-1]:
            where = where[each]
        if value is MISSING:
            del where[path[-1]]
        else:
            where[path[-1]] = value
        return result

    return change


MISSING = object()
M = "metadata"
TABLES = {
    "no uuid": _changed((M, "table-uuid"), MISSING),
    "uuid null": _changed((M, "table-uuid"), None),
    "uuid a number": _changed((M, "table-uuid"), 7),
    "uuid empty": _changed((M, "table-uuid"), ""),
    "no location": _changed((M, "location"), MISSING),
    "location null": _changed((M, "location"), None),
    "location a list": _changed((M, "location"), ["file:///a"]),
    "location empty": _changed((M, "location"), ""),
    "location with a NUL": _changed((M, "location"), "file:///a/\0b"),
    "location with a line break": _changed((M, "location"), "file:///a/b\n"),
    "property a number": _changed((M, "properties", "a"), 1),
    "property null": _changed((M, "properties", "a"), None),
    "property an object": _changed((M, "properties", "a"), {}),
    "refs a list": _changed((M, "refs"), []),
    "ref null": _changed((M, "refs", "main"), None),
    "ref empty": _changed((M, "refs", "main"), {}),
    "ref a text": _changed((M, "refs", "main", "snapshot-id"), "1"),
    "ref a fraction": _changed((M, "refs", "main", "snapshot-id"), 1.5),
    "ref without a type": _changed((M, "refs", "main", "type"), MISSING),
    "ref beyond all": _changed((M, "refs", "main", "snapshot-id"), 10**30),
    "current a text": _changed((M, "current-snapshot-id"), "1"),
    "current true": _changed((M, "current-snapshot-id"), True),
    "snapshots an object": _changed((M, "snapshots"), {"a": 1}),
    "snapshot null": _changed((M, "snapshots"), [None]),
    "snapshot without an id": _changed((M, "snapshots"), [{"manifest-list": "x"}]),
    "snapshot id a text": _changed((M, "snapshots"), [{"snapshot-id": "1"}]),
    "manifest list a number": _changed((M, "snapshots"), [{"snapshot-id": 1, "manifest-list": 1}]),
    "time a text": _changed((M, "last-updated-ms"), "now"),
    "sequence number a list": _changed((M, "last-sequence-number"), []),
    "schema id a text": _changed((M, "current-schema-id"), "0"),
    "metadata log a text": _changed((M, "metadata-log"), "x"),
    "metadata log of nothing": _changed((M, "metadata-log"), [{}]),
    "metadata location a number": _changed(("metadata-location",), 1),
    "config a list": _changed(("config",), []),
    "config of numbers": _changed(("config",), {"s3.region": 1}),
    "credentials an object": _changed(("storage-credentials",), {"prefix": "x"}),
    "credential null": _changed(("storage-credentials",), [None]),
    "credential without a config": _changed(("storage-credentials",), [{"prefix": "x"}]),
}
"""Wrong about a Lance table."""


def table(location: str, uuid: str | None = None) -> dict[str, Any]:
    """A right answer about one."""
    metadata = {
        "table-uuid": uuid or str(uuid4()),
        "location": location,
        "properties": {"table_type": "lance", "a": "b"},
        "refs": {"main": {"snapshot-id": 1, "type": "branch"}},
        "snapshots": [{"snapshot-id": 1, "manifest-list": f"{location}/_versions/1.manifest"}],
        "current-snapshot-id": 1,
        "last-updated-ms": 1,
        "last-sequence-number": 1,
        "current-schema-id": 0,
    }
    return {"metadata-location": f"{location}/metadata/1.metadata.json", "metadata": metadata}


def said(content: object) -> Reply:
    return answer(200, json.dumps(content).encode())


CONFIGURATIONS: dict[str, object] = {
    "defaults a list": {"defaults": ["a"], "overrides": {}},
    "overrides a text": {"defaults": {}, "overrides": "x"},
    "prefix a number": {"defaults": {"prefix": 1}, "overrides": {}},
    "prefix of dots": {"defaults": {"prefix": "../admin"}, "overrides": {}},
    "separator null": {"defaults": {"namespace-separator": None}, "overrides": {}},
    "separator empty": {"defaults": {"namespace-separator": ""}, "overrides": {}},
    "endpoints an object": {"defaults": {}, "overrides": {}, "endpoints": {"a": 1}},
    "endpoints of numbers": {"defaults": {}, "overrides": {}, "endpoints": [1]},
}
NAMESPACES: dict[str, object] = {
    "a text": {"namespaces": "ns"},
    "of texts": {"namespaces": ["ns"]},
    "of numbers": {"namespaces": [[1]]},
    "of nothing": {"namespaces": [[""]]},
    "null inside": {"namespaces": [None]},
    "a token that is a number": {"namespaces": [], "next-page-token": 7},
    "pages without an end": {"namespaces": [["a"]], "next-page-token": "again"},
}
IDENTIFIERS: dict[str, object] = {
    "an object": {"identifiers": {"name": "t"}},
    "of texts": {"identifiers": ["t"]},
    "without a namespace": {"identifiers": [{"name": "t"}]},
    "name null": {"identifiers": [{"namespace": ["ns"], "name": None}]},
    "namespace a text": {"identifiers": [{"namespace": "ns", "name": "t"}]},
    "a token that is an object": {"identifiers": [], "next-page-token": {}},
    "pages without an end": {"identifiers": [], "next-page-token": "again"},
}
NAMESPACE: dict[str, object] = {
    "properties a list": {"properties": ["a"]},
    "properties of numbers": {"properties": {"a": 1}},
    "properties of null": {"properties": {"a": None}},
}
TOKENS: dict[str, Reply] = {
    "no token": said({"token_type": "bearer"}),
    "token null": said({"access_token": None}),
    "token a number": said({"access_token": 7}),
    "token empty": said({"access_token": ""}),
    "token with a line break": said({"access_token": "a\r\nX-Evil: 1"}),
    "token beyond ASCII": said({"access_token": "é"}),
    "a list": said([{"access_token": "a"}]),
    "not JSON": answer(200, b"access_token=a"),
    "deep": answer(200, DEEP),
    "no luck": answer(500, b"{}"),
}
