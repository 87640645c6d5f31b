"""The sources that Spark reads for an import."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from irc_bridge.pipeline.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Format = Literal["parquet", "csv", "json", "iceberg", "sql"]
_DEFAULTS: Mapping[str, Mapping[str, str]] = {"csv": {"header": "true", "inferSchema": "true"}}


@dataclass(frozen=True, slots=True)
class Source:
    frame: "DataFrame"
    is_parquet: bool
    """Whether the frame is that of Parquet files as they are."""


def read(spark: "SparkSession", source: str, kind: Format, options: Mapping[str, str]) -> Source:
    """`source` is a path or a pattern of paths; for `iceberg` also the name of a table in a catalog of Spark's,
    for `sql` a SELECT."""
    with spark_errors(f"read {source}"):
        if kind == "sql":
            return Source(spark.sql(source), False)
        reader = spark.read.format(kind).options(**_DEFAULTS.get(kind, {}), **options)
        return Source(reader.load(source), kind == "parquet" and not options)
