"""The published Spark connector for Lance on Spark 3.5: how long it takes to write a table as Parquet, and the
same rows as Lance. Runs in an environment that has that PySpark."""

import json
import shutil
import sys
import time
from pathlib import Path


def main() -> None:
    from pyspark.sql import SparkSession

    bundle, table, folder, rounds = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
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
    for _ in range(rounds + 1):  # the first one warms up
        for folder in (parquet, written):
            shutil.rmtree(folder, ignore_errors=True)
        begun = time.perf_counter()
        spark.read.format("lance").load(table).write.parquet(str(parquet))
        copied = time.perf_counter() - begun
        begun = time.perf_counter()
        spark.read.parquet(str(parquet)).write.format("lance").save(str(written))
        print(json.dumps([copied, time.perf_counter() - begun]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
