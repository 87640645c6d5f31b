from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from contract_tests.engines.mirror_lake import LEFT_OUT, MAKERS, ODD_NAMES, Place, lance_rows, versions_of
from contract_tests.engines.same_rows import of_arrow, of_lance, require_same
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS


@pytest.fixture(scope="module")
def spark(local_place: Place) -> Iterator[SparkSession]:
    settings = settings_for(local_place.url)
    settings |= {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
    try:
        with spark_session(settings) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(spark: SparkSession, local_place: Place, name: str) -> None:
    for version in versions_of(local_place.tables[name]):
        expected = lance_rows(local_place.tables[name], version)
        found = spark.sql(f"SELECT * FROM irc.default.`{name}` VERSION AS OF {version}").toArrow()
        require_same(of_arrow(found, expected.schema), of_lance(expected, LEFT_OUT.get(name, ())))
