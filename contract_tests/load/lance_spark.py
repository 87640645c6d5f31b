"""The published Spark connector for Lance on Spark 3.5: how long it takes to write a table as Parquet, and the
same rows as Lance, again and again. Runs in an environment that has that PySpark."""

import json
import shutil
import sys
import time
from pathlib import Path

WHOLE = "1000000"
"""Rows of a batch: more than a task has. With smaller ones its writer often waits for ever for the end of its
rows, because it looks whether that was said before the thread that says it has gone on."""


def main() -> None:
    from pyspark.sql import SparkSession

    bundle, table, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", bundle)
        .config("spark.sql.catalog.lance", "com.lancedb.lance.spark.LanceCatalog")
        .config("spark.sql.parquet.compression.codec", "zstd")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .getOrCreate()
    )
    parquet, written = folder / "parquet", folder / "written.lance"
    while True:
        for each in (parquet, written):
            shutil.rmtree(each, ignore_errors=True)
        begun = time.perf_counter()
        spark.read.format("lance").load(table).write.parquet(str(parquet))
        copied = time.perf_counter() - begun
        begun = time.perf_counter()
        spark.read.parquet(str(parquet)).write.format("lance").option("batch_size", WHOLE).save(str(written))
        print(json.dumps([copied, time.perf_counter() - begun]), flush=True)


if __name__ == "__main__":
    main()
