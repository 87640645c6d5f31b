from collections.abc import Iterator

import pytest

from contract_tests.engines.mirror_lake import LEFT_OUT, MAKERS, ODD_NAMES, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import of_json, of_lance, require_same
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import KEY, SECRET
from contract_tests.worlds.trino import Trino, trino_server

S3_SETTINGS = {
    "fs.native-s3.enabled": "true",
    "s3.path-style-access": "true",
    "s3.region": "us-east-1",
    "s3.aws-access-key": KEY,
    "s3.aws-secret-key": SECRET,
}


def settings_for(url: str) -> dict[str, str]:
    return {
        "connector.name": "iceberg",
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": url,
        "iceberg.rest-catalog.warehouse": "main",
        "iceberg.rest-catalog.nested-namespace-enabled": "true",
        "iceberg.rest-catalog.case-insensitive-name-matching": "true",
        "fs.hadoop.enabled": "true",
    }


@pytest.fixture(scope="module")
def trino(local_place: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    try:
        with trino_server(tmp_path_factory.mktemp("trino"), {"local": settings_for(local_place.url)}) as trino:
            yield trino
    except CannotRun as reason:
        pytest.skip(f"Trino: {reason}")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(trino: Trino, local_place: Place, name: str) -> None:
    for version in versions_of(local_place.tables[name]):
        expected = lance_rows(local_place.tables[name], version)
        columns, rows = trino.run(f"SELECT * FROM local.default.\"{name}\" FOR VERSION AS OF BIGINT '{version}'")
        require_same(of_json(columns, rows, expected.schema), of_lance(expected, LEFT_OUT.get(name, ())))
