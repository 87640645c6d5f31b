"""The jobs on Spark: mirror, import, verify and a part of migrate. This is the only room that imports `pyspark`.
Executors need pylance and pyarrow, and get this package from the driver (`shipping`)."""
