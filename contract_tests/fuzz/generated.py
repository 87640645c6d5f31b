"""Requests that schemathesis makes of an OpenAPI document: for each operation good ones and bad ones in turn.

FUZZ_REQUESTS says how many there are over both documents.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests.exceptions import InvalidHeader, InvalidURL

from contract_tests.lance.client import ARROW, ROWS, ipc

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "5000"))
OPERATIONS = 84
"""Of both documents together."""
OF_EACH = -(-REQUESTS // OPERATIONS)
SECONDS = 60

SEARCH = settings(
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
NO_ROWS = pa.table({"id": pa.array([], pa.int64())})
schemathesis.openapi.media_type(
    ARROW, st.sampled_from([ipc(ROWS), ipc(NO_ROWS), ipc(ROWS)[:-9], b""]) | st.binary(max_size=200)
)


@dataclass
class Fuzz:
    """`known` are values for parameters of paths under which something is found; about every second request has
    them."""

    url: str
    session: requests.Session
    known: Mapping[str, Sequence[str]]
    sent: dict[str, int] = field(default_factory=dict)

    def run(self, operation: Any) -> None:
        """Sends OF_EACH requests of the operation. What an answer must be, the session checks."""
        name = f"{operation.method.upper()} {operation.path}"
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            cases = operation.as_strategy(generation_mode=mode)
            before = self.sent.get(name, 0)
            while (left := before + OF_EACH // 2 - self.sent.get(name, 0)) > 0:
                self._run(name, cases, left)

    def _run(self, name: str, cases: st.SearchStrategy[Any], times: int) -> None:
        names = {key: st.none() | st.sampled_from(list(values)) for key, values in self.known.items()}

        @settings(SEARCH, max_examples=times)
        @given(case=cases, known=st.fixed_dictionaries(names))
        def send(case: Any, known: dict[str, str | None]) -> None:
            given = case.path_parameters or {}
            case.path_parameters = {key: known.get(key) or value for key, value in given.items()}
            self.sent[name] = self.sent.get(name, 0) + 1
            try:
                response = case.call(base_url=self.url, session=self.session, timeout=SECONDS)
            except (InvalidHeader, InvalidURL):  # the client does not send it
                return
            assert response.status_code < 500, (case.as_curl_command(), response.text)

        send()


def operations(document: Path) -> list[Any]:
    if not document.exists():
        return []
    schema: Any = schemathesis.openapi.from_path(document)
    return [each.ok() for each in schema.get_all_operations()]


def name_of(operation: Any) -> str:
    return f"{operation.method.upper()} {operation.path}"
