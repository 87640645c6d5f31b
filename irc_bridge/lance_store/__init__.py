"""Reads and writes Lance tables. This is the only room that imports `lance`: it opens tables, reads manifests and
history (`tables.LanceTables`), and makes versions out of staged manifests (`version_files.VersionFiles`). Errors
of pylance end here."""
