"""What a user writes into connect, and how requests are sent."""

import pickle
import socket
import subprocess
import sys
from typing import Any

import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import BRIDGE, IMPLEMENTATION, Catalog
from contract_tests.client.proxy import Fault, proxied
from irc_bridge.client import IcebergRestNamespace


@pytest.fixture
def catalog(bridge_url: str) -> Catalog:
    return Catalog(BRIDGE, bridge_url, True, {"warehouse": "main"})


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({}, "property uri"),
        ({"uri": "localhost:8181"}, "property uri"),
        ({"uri": "http://h", "warehuose": "w"}, "did you mean warehouse"),
        ({"uri": "http://h", "oauth2_server_uri": "x"}, "did you mean oauth2-server-uri"),
        ({"uri": "http://h", "zzz": "1"}, "Unknown property zzz: there are uri, "),
        ({"uri": "http://h", "token": "t", "credential": "a:b"}, "not both"),
        ({"uri": "http://h", "managed_by": "me"}, "storage or impl: me"),
        ({"uri": "http://h", "read_timeout": "soon"}, "read_timeout is a number of seconds above 0: soon"),
        ({"uri": "http://h", "connect_timeout": "-1"}, "connect_timeout is a number"),
    ],
)
def test_properties_that_cannot_be(properties: dict[str, str], says: str) -> None:
    with pytest.raises(ln.errors.InvalidInputError, match=says):
        IcebergRestNamespace(**properties)
    with pytest.raises(ValueError, match=says):
        ln.connect(IMPLEMENTATION, properties)


def test_a_namespace_is_told_by_who_asks() -> None:
    given = {"uri": "http://h", "token": "secret-token"}
    first, same, other = (IcebergRestNamespace(**{**given, "token": t}) for t in ("a-secret", "a-secret", "b"))
    assert first.namespace_id() == same.namespace_id() != other.namespace_id()
    assert "a-secret" not in repr(first) and "http://h" in repr(first)


def test_it_travels_to_other_processes(catalog: Catalog) -> None:
    namespace = catalog.connect()
    namespace.list_namespaces(ln.ListNamespacesRequest())
    again = pickle.loads(pickle.dumps(namespace))
    assert "default" in again.list_namespaces(ln.ListNamespacesRequest()).namespaces
    assert again.namespace_id() == namespace.namespace_id()


def test_a_forked_process_has_connections_of_its_own(catalog: Catalog) -> None:
    code = (
        "import os, sys, warnings; warnings.simplefilter('ignore')\n"
        "from irc_bridge.client import IcebergRestNamespace\n"
        f"namespace = IcebergRestNamespace(uri={catalog.url!r})\n"
        "namespace.list_namespaces({})\n"
        "children = [os.fork() for _ in range(2)]\n"
        "found = [namespace.list_namespaces({}).namespaces.count('default') for _ in range(50)]\n"
        "assert found == [1] * 50, found\n"
        "if all(children): assert [os.waitpid(each, 0)[1] for each in children] == [0, 0]\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr


def test_headers_go_with_each_request(catalog: Catalog) -> None:
    with proxied(catalog.url) as proxy:
        namespace = Catalog(BRIDGE, proxy.url, True).connect(**{"header.X-Team": "a"})
        namespace.list_namespaces(ln.ListNamespacesRequest())
    assert [each.headers["x-team"] for each in proxy.seen] == ["a", "a"]


def test_the_prefix_is_the_servers(catalog: Catalog) -> None:
    """Overrides go before what the user says, that goes before defaults."""

    def prefixes(defaults: dict[str, str], overrides: dict[str, str], **given: str) -> str:
        def rewrite(seen: Any, body: dict[str, Any]) -> dict[str, Any]:
            return {"defaults": defaults, "overrides": overrides} if "config" in seen.path else body

        with proxied(catalog.url, rewrite=rewrite) as proxy:
            namespace = IcebergRestNamespace(uri=proxy.url, **given)
            with pytest.raises(ln.errors.NamespaceNotFoundError):
                namespace.describe_namespace(ln.DescribeNamespaceRequest(id=["a", "b"]))
        return proxy.seen[-1].path

    plain = "/namespaces/a%1Fb"
    assert prefixes({"prefix": "d"}, {}) == f"/v1/d{plain}"
    assert prefixes({"prefix": "d"}, {}, prefix="u") == f"/v1/u{plain}"
    assert prefixes({"prefix": "d"}, {"prefix": "o"}, prefix="u") == f"/v1/o{plain}"
    assert prefixes({}, {}) == f"/v1{plain}"
    assert prefixes({}, {"namespace-separator": "%7C"}) == "/v1/namespaces/a%7Cb"


def test_a_warehouse_that_is_not_there(catalog: Catalog) -> None:
    with pytest.raises(ln.errors.NamespaceNotFoundError, match="configuration"):
        catalog.connect(warehouse="nowhere").list_namespaces(ln.ListNamespacesRequest())


@pytest.mark.parametrize(
    "fault", [Fault.LOST, Fault.UNANSWERED, Fault.HALF, Fault.BUSY], ids=lambda each: each.name
)
def test_a_question_is_asked_again_but_not_for_ever(catalog: Catalog, fault: Fault) -> None:
    faults = [fault, fault]
    with proxied(catalog.url, lambda _: faults.pop() if faults else None) as proxy:
        namespace = Catalog(BRIDGE, proxy.url, True).connect()
        assert "default" in namespace.list_namespaces(ln.ListNamespacesRequest()).namespaces
        assert len(proxy.seen) == 4  # the configuration three times, and the list
        proxy.meet = lambda _: fault
        with pytest.raises(ln.errors.ServiceUnavailableError):
            namespace.list_namespaces(ln.ListNamespacesRequest())
    assert len(proxy.seen) == 7


def test_a_change_is_sent_once(catalog: Catalog, name: str) -> None:
    with proxied(catalog.url) as proxy:
        namespace = Catalog(BRIDGE, proxy.url, True).connect()
        namespace.list_namespaces(ln.ListNamespacesRequest())
        proxy.seen.clear()
        proxy.meet = lambda _: Fault.UNANSWERED
        with pytest.raises(ln.errors.ServiceUnavailableError, match="not known"):
            namespace.create_namespace(ln.CreateNamespaceRequest(id=[name]))
    assert len(proxy.seen) == 1
    assert name in catalog.connect().list_namespaces(ln.ListNamespacesRequest()).namespaces


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        namespace = IcebergRestNamespace(uri=f"http://127.0.0.1:{silent.getsockname()[1]}", read_timeout="0.2")
        with pytest.raises(ln.errors.ServiceUnavailableError, match="read_timeout"):
            namespace.list_namespaces(ln.ListNamespacesRequest())


def test_what_is_no_catalog_is_said_to_be_none(catalog: Catalog) -> None:
    with pytest.raises(ln.errors.LanceNamespaceError, match="Could not read the configuration"):
        IcebergRestNamespace(uri=f"{catalog.url}/health").list_namespaces(ln.ListNamespacesRequest())


def test_a_throttled_request_says_so(catalog: Catalog) -> None:
    with proxied(catalog.url, refuse=lambda _: 429) as proxy:
        namespace = IcebergRestNamespace(uri=proxy.url)
        with pytest.raises(ln.errors.ThrottlingError):
            namespace.list_namespaces(ln.ListNamespacesRequest())
    assert len(proxy.seen) == 3
