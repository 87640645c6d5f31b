import pytest
from pyiceberg.catalog import Catalog, load_catalog

from contract_tests.engines.mirror_lake import LEFT_OUT, MAKERS, ODD_NAMES, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import of_arrow, of_lance, require_same


@pytest.fixture(scope="module")
def catalog(place: Place) -> Catalog:
    options = place.tables["types"].options
    s3 = {
        "s3.endpoint": options.get("aws_endpoint", ""),
        "s3.access-key-id": options.get("aws_access_key_id", ""),
        "s3.secret-access-key": options.get("aws_secret_access_key", ""),
        "s3.region": "us-east-1",
    }
    return load_catalog("bridge", type="rest", uri=place.url, warehouse="main", **(s3 if options else {}))


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(catalog: Catalog, place: Place, name: str) -> None:
    table = catalog.load_table((place.namespace, name))
    versions = versions_of(place.tables[name])
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == versions
    for version in versions:
        expected = lance_rows(place.tables[name], version)
        found = table.scan(snapshot_id=version).to_arrow()
        require_same(of_arrow(found, expected.schema), of_lance(expected, LEFT_OUT.get(name, ())))
