import re
from threading import Lock

_UUID = re.compile(rb'"table-uuid"\s*:\s*"([0-9a-fA-F-]{36})"')
_MOST = 100_000


class SeenTables:
    """The uuids of tables that were seen to be Iceberg's. A commit that asserts one of them need not look first:
    where the name has another table by now, the assertion fails."""

    def __init__(self) -> None:
        self._iceberg: set[tuple[str, str]] = set()
        self._lock = Lock()

    def saw(self, warehouse: str, loaded: bytes, is_lance: bool) -> None:
        found = _UUID.search(loaded)
        if found is None:
            return
        key = warehouse, found[1].decode().lower()
        with self._lock:
            if is_lance:
                self._iceberg.discard(key)
            elif key not in self._iceberg:
                if len(self._iceberg) >= _MOST:
                    self._iceberg.clear()
                self._iceberg.add(key)

    def is_iceberg(self, key: tuple[str, str | None]) -> bool:
        return key[1] is not None and (key[0], key[1].lower()) in self._iceberg
