"""The identity of the bridge at another server: none, a token, a credential that is exchanged for tokens, or the
identity of the client that asks the bridge."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from irc_bridge.errors import BadGateway, Unauthenticated

_TOKEN = re.compile(r"[\x21-\x7e]+")
_EARLY_S = 60.0
"""A token is renewed this long before it expires, or after nine tenths of a shorter life."""

Clock = Callable[[], float]


class Auth(Protocol):
    def header(self) -> str | None:
        """The value of the header Authorization. May wait for a token endpoint."""

    def ready(self) -> bool:
        """Whether `header` will not wait."""

    def renewed(self, refused: str | None) -> bool:
        """Called with the header that a server did not take. True when there is another one to try."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token that somebody else looks after; None for servers that ask for none."""

    token: str | None = field(default=None, repr=False)

    def header(self) -> str | None:
        return None if self.token is None else f"Bearer {self.token}"

    def ready(self) -> bool:
        return True

    def renewed(self, refused: str | None) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that asks the bridge, with the Authorization header that it sent."""

    given: str | None = field(default=None, repr=False)

    def header(self) -> str | None:
        return self.given

    def ready(self) -> bool:
        return True

    def renewed(self, refused: str | None) -> bool:
        return False


Post = Callable[[str, Mapping[str, str]], tuple[int, Any]]
"""Sends a form to a URL; gives status and the JSON of the answer."""


class ClientCredentials:
    """The OAuth2 client credentials flow. Threads that need a token at once wait for one request."""

    def __init__(self, post: Post, uri: str, credential: str, scope: str, clock: Clock = time.monotonic) -> None:
        self._post = post
        self._uri = uri
        client_id, colon, secret = credential.partition(":")
        self._form = {"grant_type": "client_credentials", "scope": scope}
        self._form |= {"client_id": client_id, "client_secret": secret} if colon else {"client_secret": client_id}
        self._clock = clock
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at = 0.0

    def header(self) -> str:
        if not self.ready():  # asked without the lock: who has a good token does not wait for one who gets another
            with self._lock:
                if not self.ready():
                    self._fetch()
        return f"Bearer {self._token}"

    def ready(self) -> bool:
        return self._token is not None and self._clock() < self._renew_at

    def renewed(self, refused: str | None) -> bool:
        with self._lock:
            if refused == f"Bearer {self._token}":
                self._fetch()
            return True

    def _fetch(self) -> None:
        asked_at = self._clock()
        status, answer = self._post(self._uri, self._form)
        if status != 200:
            kind = Unauthenticated if 400 <= status < 500 else BadGateway
            raise kind(
                f"The token endpoint {self._uri} gave no token for the credential: it answered {status}"
                f"{_reason(answer)}. Check credential, scope and oauth2-server-uri"
            )
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise BadGateway(
                f"The token endpoint {self._uri} answered without an access_token. Check oauth2-server-uri"
            )
        self._token = token
        life = answer.get("expires_in")
        self._renew_at = float("inf")
        if isinstance(life, int | float) and life > 0:
            self._renew_at = asked_at + life - min(_EARLY_S, life / 10)


def _reason(answer: Any) -> str:
    """OAuth2 names its errors beside each other, Iceberg in an envelope."""
    if not isinstance(answer, dict):
        return ""
    error = answer.get("error")
    if isinstance(error, dict):
        return f" ({error.get('message')})"
    return f" ({answer.get('error_description') or error})" if error else ""
