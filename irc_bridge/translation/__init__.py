"""Lance to Iceberg as pure functions: no I/O, no clock."""
