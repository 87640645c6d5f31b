from collections.abc import Iterator

import pyarrow as pa
import pytest

from contract_tests.engines.every_version import Engine, require_every_version
from contract_tests.engines.mirror_lake import MAKERS, ODD_NAMES, Place
from contract_tests.engines.same_rows import Row, of_json
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.trino import Trino, trino_server


def settings_of(place: Place) -> dict[str, str]:
    settings = {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": place.url,
        "iceberg.rest-catalog.warehouse": "main",
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
    }
    s3 = place.s3_properties
    if not s3:
        return {**settings, "fs.hadoop.enabled": "true"}
    return {
        **settings,
        "fs.native-s3.enabled": "true",
        "s3.endpoint": s3["s3.endpoint"],
        "s3.path-style-access": "true",
        "s3.region": s3["client.region"],
        "s3.aws-access-key": s3["s3.access-key-id"],
        "s3.aws-secret-key": s3["s3.secret-access-key"],
    }


@pytest.fixture(scope="module")
def trino(places: list[Place], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    catalogs = {place.catalog: settings_of(place) for place in places}
    try:
        probe = f"SELECT count(id) FROM {of(places[0], 'types', 1)}"
        with trino_server(tmp_path_factory.mktemp("trino"), catalogs, probe) as trino:
            yield trino
    except CannotRun as reason:
        pytest.skip(f"Trino: {reason}")


@pytest.fixture(scope="module")
def engine(trino: Trino) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        return of_json(*trino.run(f"SELECT * FROM {of(place, name, version)}"), schema)

    def count(place: Place, name: str, version: int) -> int:
        ((counted,),) = trino.rows(f"SELECT count(*) FROM {of(place, name, version)}")
        return counted  # type: ignore[no-any-return]

    return Engine(rows, count)


def of(place: Place, name: str, version: int) -> str:
    return f"{place.catalog}.{place.namespace}.\"{name}\" FOR VERSION AS OF BIGINT '{version}'"


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(engine: Engine, place: Place, name: str) -> None:
    require_every_version(engine, place, name)
