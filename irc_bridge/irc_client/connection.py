"""Requests to one IRC server: who asks, what is tried again, and what an answer that is no result means."""

import json
import time
from collections.abc import Mapping
from typing import Any

import requests

from irc_bridge.errors import Internal
from irc_bridge.irc_client.auth import Auth
from irc_bridge.irc_client.failures import NO_LONGER_AUTHENTICATED, Answer, Request, error_of, lost
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
        answer = self._tried(request)
        if not 200 <= answer.status < 300:
            raise error_of(request, answer, _said(answer))
        if not answer.content:
            return {}
        content = _json(answer)
        if not isinstance(content, dict):
            raise Internal(
                f"Could not {request.what}: {self.uri} did not answer with JSON. Is it an Iceberg REST catalog?"
            )
        return content

    def _tried(self, request: Request) -> Answer:
        for attempt in range(_RETRIES if request.safe else 0):
            pause = _PAUSE_S * 2**attempt
            try:
                answer = self._authenticated(request)
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
        response = self._pool.send(request.method, self.uri + request.path, headers, request.query, body)
        return Answer(response.status_code, response.headers, response.content)


def _json(answer: Answer) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        return None


def _said(answer: Answer) -> Mapping[str, Any]:
    body = _json(answer)
    said = body.get("error") if isinstance(body, dict) else None
    return said if isinstance(said, dict) else {}


def _retry_after(answer: Answer, otherwise: float) -> float:
    try:
        return float(answer.headers.get("retry-after", otherwise))
    except ValueError:
        return otherwise
