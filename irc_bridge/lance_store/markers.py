"""The files with which Lance namespaces and the bridge mark the folder of a table (seeds 001 and 002)."""

RESERVED = ".lance-reserved"
"""The folder is that of a table which is declared."""
DEREGISTERED = ".lance-deregistered"
"""The folder is that of a table whose name is gone. The bridge writes a token into it that is never used twice."""
LOCK = ".irc-bridge-lock"
"""One process removes the folder, or registers it, at this moment."""

TABLE_PARTS = {
    *(RESERVED, DEREGISTERED, LOCK),
    *("_versions", "_transactions", "_deletions", "_indices", "_refs", "data", "tree", "_irc_bridge", "_iceberg"),
}
"""What lies in the folder of a Lance table: markers, Lance's own folders, and those of the bridge."""
