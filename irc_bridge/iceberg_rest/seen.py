from collections.abc import Set
from threading import Lock

_MOST = 100_000


class SeenTables:
    """The uuids of tables that were seen to be Iceberg's. A commit that asserts one of them need not look first:
    where the name has another table by now, the assertion fails."""

    def __init__(self) -> None:
        self._iceberg: set[tuple[str, str]] = set()
        self._lock = Lock()

    def saw(self, warehouse: str, uuids: Set[str], is_lance: bool) -> None:
        """`uuids` stand at table-uuid in the answer to a load. A property of an Iceberg table can have this name,
        and the uuid of a Lance table as its value: of several none is remembered."""
        if len(uuids) != 1:
            return
        key = (warehouse, next(iter(uuids)))
        with self._lock:
            if is_lance:
                self._iceberg.discard(key)
            elif key not in self._iceberg:
                if len(self._iceberg) >= _MOST:
                    self._iceberg.clear()
                self._iceberg.add(key)

    def is_iceberg(self, key: tuple[str, str | None]) -> bool:
        return key[1] is not None and (key[0], key[1].lower()) in self._iceberg
