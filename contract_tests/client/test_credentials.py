"""What a server vends reaches pylance under Lance's names, and again before it expires."""

import time
from dataclasses import replace
from typing import Any

import lance
import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import BRIDGE_S3, PLAIN_S3, Catalog, rows
from contract_tests.client.proxy import Proxy, proxied
from contract_tests.worlds.s3 import KEY, S3, SECRET
from irc_bridge.backends.upstream.storage_options import lance_options

ON_S3 = pytest.mark.parametrize("catalog", [BRIDGE_S3, PLAIN_S3], indirect=True)


def delegated(proxy: Proxy) -> list[bool]:
    loads = [each for each in proxy.seen if each.method == "GET" and "/tables/" in each.path]
    return [each.headers.get("x-iceberg-access-delegation") == "vended-credentials" for each in loads]


@ON_S3
def test_vended_keys_have_lances_names(catalog: Catalog, table: list[str], s3: S3) -> None:
    namespace = catalog.connect()
    declared = namespace.declare_table(ln.DeclareTableRequest(id=table))
    for answer in (declared, namespace.describe_table(ln.DescribeTableRequest(id=table))):
        options = answer.storage_options or {}
        assert options["aws_access_key_id"] == KEY and options["aws_secret_access_key"] == SECRET
        assert options["aws_endpoint"] == s3.endpoint and options["aws_region"] == "us-east-1"
        assert not [key for key in options if "." in key or "-" in key]
    without = ln.DescribeTableRequest(id=table, vend_credentials=False)
    assert "aws_access_key_id" not in (namespace.describe_table(without).storage_options or {})


@ON_S3
def test_credentials_that_expire_are_asked_for_again(catalog: Catalog, table: list[str]) -> None:
    """The first ones are no good when they are needed: only who asks again can write."""
    lance.write_dataset(rows(1), namespace_client=catalog.connect(), table_id=table)
    vended: list[str] = []

    def expiring(seen: Any, body: dict[str, Any]) -> dict[str, Any]:
        config = body.get("config") or {}
        secrets = [key for key in ("aws_secret_access_key", "s3.secret-access-key") if key in config]
        if secrets:
            life = 3_600_000 if vended else 1
            config["s3.session-token-expires-at-ms"] = str(int(time.time() * 1000) + life)
            config |= {} if vended else dict.fromkeys(secrets, "expired")
            vended.append(seen.path)
        return body

    with proxied(catalog.url, rewrite=expiring) as proxy:
        namespace = replace(catalog, url=proxy.url).connect()
        dataset = lance.write_dataset(rows(2), namespace_client=namespace, table_id=table, mode="append")
        assert dataset.count_rows() == 2
        assert len(vended) > 1 and all(delegated(proxy))
    assert catalog.version(table) == 2


@ON_S3
def test_who_has_credentials_asks_for_none(catalog: Catalog, table: list[str], s3: S3) -> None:
    own = {f"storage.{key}": value for key, value in s3.options.items()}
    with proxied(catalog.url) as proxy:
        namespace = replace(catalog, url=proxy.url, properties={**catalog.properties, **own}).connect()
        lance.write_dataset(rows(1), namespace_client=namespace, table_id=table)
        described = namespace.describe_table(ln.DescribeTableRequest(id=table))
    assert described.storage_options == dict(s3.options)
    assert delegated(proxy) and not any(delegated(proxy))


@pytest.mark.parametrize(
    ("vended", "expected"),
    [
        ({"client.region": "eu-1", "token": "secret", "scan-planning-mode": "server"}, {"aws_region": "eu-1"}),
        ({"s3.session-token": "t"}, {"aws_session_token": "t"}),
        ({"s3.session-token-expires-at-ms": "17"}, {"expires_at_millis": "17"}),
        (
            {"s3.endpoint": "http://h:1", "s3.path-style-access": "true"},
            {"aws_endpoint": "http://h:1", "allow_http": "true", "aws_virtual_hosted_style_request": "false"},
        ),
        ({"s3.endpoint": "https://h", "endpoint": "https://own"}, {"endpoint": "https://own"}),
        (
            {"gcs.oauth2.token": "g", "gcs.oauth2.token-expires-at": "9"},
            {"google_storage_token": "g", "expires_at_millis": "9"},
        ),
        (
            {
                "adls.sas-token.acc.dfs.core.windows.net": "s",
                "adls.sas-token-expires-at-ms.acc.dfs.core.windows.net": "5",
            },
            {
                "azure_storage_sas_token": "s",
                "azure_storage_account_name": "acc",
                "expires_at_millis": "5",
            },
        ),
    ],
)
def test_icebergs_names(vended: dict[str, str], expected: dict[str, str]) -> None:
    assert lance_options({}, vended) == expected


def test_what_the_user_wrote_goes_first() -> None:
    vended = {"s3.access-key-id": "k", "s3.secret-access-key": "s", "s3.endpoint": "http://inside:9000"}
    placed = {"endpoint": "http://outside:9000"}
    assert lance_options(placed, vended) == {
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "allow_http": "true",
        **placed,
    }
    own = {"access_key_id": "mine", "secret_access_key": "mine too"}
    theirs = {**vended, "s3.session-token": "t", "s3.session-token-expires-at-ms": "1"}
    options = lance_options(own, theirs)
    assert options == {"aws_endpoint": "http://inside:9000", "allow_http": "true", **own}
