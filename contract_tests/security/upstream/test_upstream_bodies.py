"""Bodies that the server behind would read in another way than the bridge."""

import gzip
import json

import pytest
import requests

from contract_tests.security.upstream.canary import Canary
from contract_tests.security.upstream.client import (
    LANCE,
    Client,
    is_not_lance,
    set_properties,
)


class TestBodiesThatTwoServersReadInTwoWays:
    """The server behind would take them; the bridge would not see in them what the server sees."""

    CREATE = '{"name":"t","location":"%s","schema":{"type":"struct","fields":[]},"properties":{%s}}'
    LANCE = '"table_type":"lance"'

    def answer(self, client: Client, body: bytes, headers: dict[str, str] | None = None) -> requests.Response:
        sent = {"Content-Type": "application/json", **(headers or {})}
        return client.post(f"/namespaces/{client.namespace}/tables", data=body, headers=sent)

    def test_they_are_refused(self, client: Client, outside: Canary) -> None:
        plain = self.CREATE % (outside.table, self.LANCE)
        escaped = self.CREATE % (outside.table, '"t\\u0061ble_type":"l\\u0061nce"')
        twice = plain.replace('"properties"', '"properties":{},"properties"')
        bodies: list[tuple[bytes, dict[str, str]]] = [
            (escaped.encode(), {}),
            ((plain + " and more").encode(), {}),
            ((plain + "{}").encode(), {}),
            (twice.encode(), {}),
            (
                self.CREATE.encode()
                % (str(outside.table).encode(), b'"table_type":"iceberg",' + self.LANCE.encode()),
                {},
            ),
            (plain.encode("utf-16"), {}),
            (plain.encode("utf-16-le"), {}),
            (b"\xef\xbb\xbf" + plain.encode(), {}),
            (plain.encode(), {"Content-Type": "application/json; charset=ISO-2022-JP"}),
            (gzip.compress(plain.encode()), {"Content-Encoding": "gzip"}),
            (b"[" * 100_000, {}),
        ]
        for body, headers in bodies:
            refused = self.answer(client, body, headers)
            assert refused.status_code == 400, (body[:300], refused.text)
            assert client.load("t").status_code == 404
        assert outside.is_unchanged()

    def test_commits_too(self, client: Client, outside: Canary) -> None:
        assert client.create("ice", location=str(outside.table)).status_code == 200
        plain = json.dumps({"requirements": [], "updates": [set_properties(**LANCE)]})
        for body in (
            plain.replace("table_type", "t\\u0061ble_type"),
            plain + " and more",
            plain.replace('"updates"', '"updates":[],"updates"', 1),
            plain.replace("lance", "l\\u0061nce"),
        ):
            refused = client.post(client.table("ice"), data=body, headers={"Content-Type": "application/json"})
            assert refused.status_code == 400, (body, refused.text)
        is_not_lance(client, "ice")

    @pytest.mark.parametrize(
        "identifier", [None, {}, {"namespace": "ab", "name": "t"}, {"namespace": [], "name": "t"}]
    )
    def test_a_transaction_names_its_tables(self, client: Client, identifier: object) -> None:
        change = {"identifier": identifier, "requirements": [], "updates": []}
        refused = client.post("/transactions/commit", {"table-changes": [change]})
        assert refused.status_code == 400
        assert "table-changes.0.identifier" in refused.text
