"""Requests to one IRC server: who asks, what is tried again, and what an answer that is no result means."""

import json
import math
import time
from collections.abc import Mapping
from typing import Any

import requests

from irc_bridge.answers import Unreadable, parsed
from irc_bridge.irc_client.auth import Auth
from irc_bridge.irc_client.failures import (
    NO_LONGER_AUTHENTICATED,
    Answer,
    Request,
    error_of,
    lost,
    unreadable,
)
from irc_bridge.irc_client.pool import Pool

_RETRIES = 2
_TRY_AGAIN = (429, 502, 503, 504)
_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Connection:
    def __init__(self, uri: str, pool: Pool, auth: Auth, headers: Mapping[str, str]) -> None:
        self.uri = uri.rstrip("/")
        self._pool = pool
        self._auth = auth
        self._headers = {"accept": "application/json", **{name.lower(): each for name, each in headers.items()}}

    def ask(self, request: Request) -> dict[str, Any]:
        """The JSON object of the answer, empty where it has no body. Only what changes nothing is tried again."""
        try:
            answer = self._tried(request)
            if not 200 <= answer.status < 300:
                raise error_of(request, answer, _said(answer))
            content = parsed(answer.content) if answer.content else {}
            if not isinstance(content, dict):
                raise Unreadable("is not a JSON object")
        except Unreadable as error:
            raise unreadable(request, self.uri, error) from None
        return content

    def _tried(self, request: Request) -> Answer:
        for attempt in range(_RETRIES if request.safe else 0):
            pause = _PAUSE_S * 2**attempt
            try:
                answer = self._authenticated(request)
            except requests.Timeout as error:
                raise lost(request, self.uri, error) from error
            except requests.RequestException:
                time.sleep(pause)
                continue
            if answer.status not in _TRY_AGAIN:
                return answer
            time.sleep(min(_retry_after(answer, pause), _LONGEST_PAUSE_S))
        try:
            return self._authenticated(request)
        except requests.RequestException as error:
            raise lost(request, self.uri, error) from error

    def _authenticated(self, request: Request) -> Answer:
        """Sent again once with another token: who is not known changes nothing."""
        header = self._auth.header()
        answer = self._send(request, header)
        if answer.status in NO_LONGER_AUTHENTICATED and self._auth.renewed(header):
            answer = self._send(request, self._auth.header())
        return answer

    def _send(self, request: Request, authorization: str | None) -> Answer:
        headers = {**self._headers, **request.headers}
        if authorization is not None:
            headers["authorization"] = authorization
        body = None
        if request.body is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(request.body).encode()
        return self._pool.send(request.method, self.uri + request.path, headers, request.query, body)


def _said(answer: Answer) -> Mapping[str, Any]:
    try:
        body = parsed(answer.content)
    except Unreadable:
        return {}
    said = body.get("error") if isinstance(body, dict) else None
    return said if isinstance(said, dict) else {}


def _retry_after(answer: Answer, otherwise: float) -> float:
    try:
        seconds = float(answer.headers.get("retry-after", otherwise))
    except ValueError:
        return otherwise
    return seconds if math.isfinite(seconds) and seconds >= 0 else otherwise
