"""HTTP connections, pooled for each process."""

import os
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from irc_bridge.errors import ServiceUnavailable

_CONNECTIONS = 32


class Pool:
    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        self._timeout = (connect_timeout, read_timeout)
        self._process: tuple[int, requests.Session] | None = None

    def send(
        self, method: str, url: str, headers: Mapping[str, str], query: Mapping[str, str], body: bytes | None
    ) -> requests.Response:
        """Follows no redirects: they would carry the token elsewhere, and turn a POST into a GET."""
        return self._session.request(
            method,
            url,
            headers=dict(headers),
            params=dict(query),
            data=body,
            timeout=self._timeout,
            allow_redirects=False,
        )

    def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, Any]:
        try:
            answer = self._session.post(url, data=dict(form), timeout=self._timeout, allow_redirects=False)
        except requests.RequestException as error:
            raise ServiceUnavailable(f"The token endpoint {url} did not answer: {type(error).__name__}") from None
        try:
            return answer.status_code, answer.json()
        except ValueError:
            return answer.status_code, None

    @property
    def _session(self) -> requests.Session:
        """A process that was forked must not speak over the connections of its parent."""
        if self._process is None or self._process[0] != os.getpid():
            self._process = (os.getpid(), _new_session())
        return self._process[1]


def _new_session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_connections=4, pool_maxsize=_CONNECTIONS))
    session.auth = _as_it_is  # a .netrc file would replace our token
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
