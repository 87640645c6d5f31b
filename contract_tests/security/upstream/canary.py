"""Files that are not the table's, and what must be true of them after an attack."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa

ROWS = pa.table({"secret": ["a", "b", "c"]})


@dataclass(frozen=True)
class Canary:
    folder: Path
    files: Mapping[str, bytes]

    @property
    def table(self) -> Path:
        """A Lance table of somebody else."""
        return self.folder / "somebody.lance"

    def is_unchanged(self) -> bool:
        """Whether each file is as it was, and no other came but metadata of Iceberg tables that a server keeps."""
        now = _files(self.folder)
        added = now.keys() - self.files.keys()
        return now.items() >= self.files.items() and all(".metadata.json" in each for each in added)


def canary(folder: Path) -> Canary:
    (folder / "plain").mkdir(parents=True)
    (folder / "plain" / "precious.txt").write_bytes(b"mine")
    lance.write_dataset(ROWS, folder / "somebody.lance")
    return Canary(folder, _files(folder))


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
