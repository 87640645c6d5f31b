"""The published Spark connector for Lance on Spark 3.5: how long it takes to write a table as Parquet, and the
same rows as Lance, again and again. Runs in an environment that has that PySpark."""

import json
import os
import shutil
import sys
import time
from pathlib import Path


def main() -> None:
    from pyspark.sql import SparkSession

    # Its writer wakes up before the thread that told it of the end of the rows has noted that, and then waits for
    # ever. Threads scheduled like this do not take the processor from the one that wakes them.
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
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
        spark.read.parquet(str(parquet)).write.format("lance").save(str(written))
        print(json.dumps([copied, time.perf_counter() - begun]), flush=True)


if __name__ == "__main__":
    main()
