from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from contract_tests.engines.every_version import Engine, marked, require_every_version
from contract_tests.engines.mirror_lake import MAKERS, ODD_NAMES, Place
from contract_tests.engines.same_rows import Row, of_arrow
from contract_tests.worlds.spark import LEAVES_SOCKETS, CannotRun, settings_for, spark_session

pytestmark = LEAVES_SOCKETS


def settings_of(place: Place) -> dict[str, str]:
    """As `irc-bridge connect` has them, under the name of the place and with what its storage needs."""
    prefix = f"spark.sql.catalog.{place.catalog}"
    named = {key.replace("spark.sql.catalog.irc", prefix): value for key, value in settings_for(place.url).items()}
    return named | {f"{prefix}.{key}": value for key, value in place.s3_properties.items()}


@pytest.fixture(scope="module")
def spark(places: list[Place]) -> Iterator[SparkSession]:
    settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "1"}
    for place in places:
        settings |= settings_of(place)
    try:
        with spark_session(settings, on_s3=True) as session:
            yield session
    except CannotRun as reason:
        pytest.skip(f"Spark: {reason}")


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Engine:
    def rows(place: Place, name: str, version: int, schema: pa.Schema) -> list[Row]:
        return of_arrow(spark.sql(f"SELECT * FROM {of(place, name)} VERSION AS OF {version}").toArrow(), schema)

    def count(place: Place, name: str, version: int) -> int:
        counted = spark.sql(f"SELECT count(*) FROM {of(place, name)} VERSION AS OF {version}").collect()
        return counted[0][0]  # type: ignore[no-any-return]

    return Engine(rows, count)


def of(place: Place, name: str) -> str:
    return f"{place.catalog}.{place.namespace}.`{name}`"


CANNOT = dict.fromkeys("?#", "s3: Iceberg for Java takes ? and # for the end of an S3 path")


@pytest.mark.parametrize("name", [*MAKERS, *ODD_NAMES])
def test_every_version(engine: Engine, place: Place, name: str, request: pytest.FixtureRequest) -> None:
    marked(CANNOT, request, place, name)
    if name == "times":
        with pytest.raises(Exception, match="Spark does not support time fields"):
            require_every_version(engine, place, name)
    else:
        require_every_version(engine, place, name)
