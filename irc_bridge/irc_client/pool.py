"""HTTP connections, pooled for each process. What an answer may take is limited, in time and in size."""

import os
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

from irc_bridge.answers import PIECE, Inflater, Unreadable, parsed
from irc_bridge.errors import BadGateway, ServiceUnavailable
from irc_bridge.irc_client.failures import Answer
from irc_bridge.irc_client.patience import PatientHttp, PatientHttps

LARGEST_ANSWER = 64 * 1024 * 1024
"""In bytes, as it comes and inflated."""
_CONNECTIONS = 32
_GZIP = {"accept-encoding": "gzip"}


class Pool:
    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        self._timeout = (connect_timeout, read_timeout)
        self._process: tuple[int, requests.Session] | None = None

    def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None = None,
        body: bytes | Mapping[str, str] | None = None,
    ) -> Answer:
        """Follows no redirects: they would carry the token elsewhere, and turn a POST into a GET. Unreadable for
        an answer that is too large or not compressed as it says, RequestException where there is none."""
        with self._session.request(
            method,
            url,
            headers={**_GZIP, **headers},
            params=dict(query or {}),
            data=body if isinstance(body, bytes | None) else dict(body),
            timeout=self._timeout,
            allow_redirects=False,
            stream=True,
        ) as response:
            return Answer(response.status_code, response.headers, _content(response))

    def post_form(self, url: str, form: Mapping[str, str]) -> tuple[int, object]:
        """The status and the JSON of the answer, None for what is no JSON."""
        try:
            answer = self.send("POST", url, {"accept": "application/json"}, body=form)
            return answer.status, parsed(answer.content) if answer.content else None
        except requests.RequestException as error:
            name = type(error).__name__
            raise ServiceUnavailable(f"The token endpoint {url} did not answer: {name}") from None
        except Unreadable as error:
            raise BadGateway(f"The token endpoint {url} was asked for a token, and its answer {error}") from None

    @property
    def _session(self) -> requests.Session:
        """A process that was forked must not speak over the connections of its parent."""
        if self._process is None or self._process[0] != os.getpid():
            self._process = (os.getpid(), _new_session())
        return self._process[1]


def _content(response: requests.Response) -> bytes:
    inflater = Inflater(response.headers.get("content-encoding", ""), LARGEST_ANSWER)
    pieces: list[bytes] = []
    try:
        while chunk := response.raw.read1(PIECE, decode_content=False):
            pieces += inflater.pieces(chunk)
    except urllib3.exceptions.ReadTimeoutError as error:
        raise requests.ReadTimeout(error) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise requests.ConnectionError(error) from error
    if pieces:
        inflater.finish()
    return b"".join(pieces)


_PATIENT = {"http": PatientHttp, "https": PatientHttps}


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = _PATIENT

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*arguments, **options)
        manager.pool_classes_by_scheme = _PATIENT
        return manager


def _new_session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(pool_connections=4, pool_maxsize=_CONNECTIONS))
    session.auth = _as_it_is  # a .netrc file would replace our token
    # clients that are passed through share the session, and a cookie of one would speak for another
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
