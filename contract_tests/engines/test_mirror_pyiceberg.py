import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from contract_tests.engines.every_version import Engine, marked, require_every_version
from contract_tests.engines.mirror_lake import MAKERS, ODD_NAMES, Place, versions_of
from contract_tests.engines.same_rows import Row, of_arrow


@pytest.fixture(scope="module")
def catalog(place: Place) -> Catalog:
    return load_catalog("bridge", type="rest", uri=place.url, warehouse="main", **place.s3_properties)


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        table = catalog.load_table((place.namespace, name))
        return of_arrow(table.scan(snapshot_id=version).to_arrow(), schema)

    def count(place: Place, name: str, version: int) -> int:
        return catalog.load_table((place.namespace, name)).scan(snapshot_id=version).count()

    return Engine(rows, count, null_is_empty=True)


CANNOT = dict.fromkeys("?#", "pyiceberg takes ? and # for the end of a path")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(
    engine: Engine, catalog: Catalog, place: Place, name: str, request: pytest.FixtureRequest
) -> None:
    marked(CANNOT, request, place, name)
    snapshots = catalog.load_table((place.namespace, name)).snapshots()
    assert [snapshot.snapshot_id for snapshot in snapshots] == versions_of(place.tables[name])
    require_every_version(engine, place, name)
