"""The guard snapshot, which stops Iceberg clients from cleaning a Lance table up. Its manifest list does not
exist, so a client that needs to know all files of the table fails, and shows the name of the list."""

GUARD_ID = 0
GUARD_SEQUENCE_NUMBER = 0
GUARD_TIMESTAMP_MS = 0
"""Lance versions are numbered from 1 and no Lance table is older than Lance, so no version has these."""
GUARD_LIST = "This-is-a-Lance-table--clean-it-up-with-Lance.avro"
GUARD_SUMMARY = "irc-bridge.guard"


def guard_list(location: str) -> str:
    return f"{location}/_iceberg/{GUARD_LIST}"
