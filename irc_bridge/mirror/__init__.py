"""Copies Lance versions to Parquet, with Iceberg manifests (`mirrors.Mirror`), and removes copies that no version
needs (`expiry.expire`). The work itself is a function that the caller gives: Spark executors do it, or this
process. The room knows no protocol and no Spark."""
