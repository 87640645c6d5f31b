"""What differs where the server never heard of Lance, and keeps Iceberg tables beside Lance tables."""

from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import ONLY_PLAIN, Catalog, rows
from contract_tests.client.proxy import proxied
from contract_tests.worlds.bridge import SCHEMA, Client

pytestmark = ONLY_PLAIN


def test_an_iceberg_table_is_no_lance_table(catalog: Catalog, table: list[str]) -> None:
    with Client(catalog.url, None) as client:
        body = {"name": "iceberg", "schema": SCHEMA}
        assert client.post(f"namespaces/{table[0]}/tables", json=body).status_code == 200
    namespace, other = catalog.connect(), [table[0], "iceberg"]
    for ask in (
        lambda: namespace.describe_table(ln.DescribeTableRequest(id=other)),
        lambda: namespace.drop_table(ln.DropTableRequest(id=other)),
        lambda: namespace.deregister_table(ln.DeregisterTableRequest(id=other)),
        lambda: namespace.rename_table(ln.RenameTableRequest(id=other, new_table_name="x")),
        lambda: namespace.create_table_version({"id": other, "version": 1, "manifest_path": "_versions/x"}),
    ):
        with pytest.raises(ln.errors.TableNotFoundError, match="is an Iceberg table"):
            ask()
    assert namespace.list_tables(ln.ListTablesRequest(id=table[:1])).tables == ["iceberg"]
    asked = ln.ListTablesRequest(id=table[:1], include_declared=False)
    assert namespace.list_tables(asked).tables == []


@pytest.mark.parametrize("stubborn", [False, True], ids=["takes set-location", "keeps its own"])
def test_a_server_that_chooses_locations_itself(
    catalog: Catalog, table: list[str], tmp_path: Path, stubborn: bool
) -> None:
    """As Nessie does: what create asks for is replaced, and what comes later may be too."""

    def elsewhere(seen: Any, body: dict[str, Any]) -> dict[str, Any]:
        is_create = seen.method == "POST" and seen.path.endswith("/tables")
        if "metadata" in body and (stubborn or is_create):
            body["metadata"]["location"] = "file:///elsewhere"
        return body

    wanted = f"file://{tmp_path}/mine"
    with proxied(catalog.url, rewrite=elsewhere) as proxy:
        namespace = Catalog(catalog.name, proxy.url, False, {}).connect()
        declared = namespace.declare_table(ln.DeclareTableRequest(id=table, location=wanted))
        assert declared.location == wanted
        written = lance.write_dataset(rows(1), namespace_client=namespace, table_id=table, mode="overwrite")
        assert (written.uri, written.version) == (wanted, 1)
        described = namespace.describe_table(ln.DescribeTableRequest(id=table))
    assert described.location == wanted
    assert ("irc-bridge.location" in (described.properties or {})) is stubborn
    create = next(each.body for each in proxy.seen if each.path.endswith("/tables"))
    assert create["stage-create"] is False and {"partition-spec", "write-order"} <= create.keys()
