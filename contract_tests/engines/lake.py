"""A folder of Lance tables as other people leave it, written with pylance alone."""

from dataclasses import dataclass
from pathlib import Path

import lance
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

ODD_NAMES = ["MixedCase", "a b", "Grüße", "it's", "semi;colon", "per%20cent", "plus+plus"]
TABLES = ["broken", "declared", "empty", "history", "people", "vectors", *ODD_NAMES]
"""The tables of the namespace `default`. `broken` cannot be opened, `declared` has no version yet."""


@dataclass(frozen=True)
class Lake:
    root: Path
    url: str

    def location(self, table: str) -> Path:
        return self.root / f"{table}.lance"


def fill(root: Path) -> None:
    namespace = DirectoryNamespace(root=str(root))
    for levels in (["ns1"], ["ns1", "ns2"]):
        namespace.create_namespace(CreateNamespaceRequest(id=levels, properties={"owner": "tests"}))
    deep = pa.table({"id": pa.array([1], pa.int64())})
    lance.write_dataset(deep, namespace_client=namespace, table_id=["ns1", "ns2", "deep"])
    namespace.declare_table(DeclareTableRequest(id=["declared"]))
    people = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["Ada", "Bo", "Cy"]})
    for name in ["people", *ODD_NAMES]:
        lance.write_dataset(people, root / f"{name}.lance")
    lance.write_dataset(people.slice(0, 0), root / "empty.lance", schema=people.schema)
    vectors = pa.table({"id": [1, 2], "emb": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))})
    lance.write_dataset(vectors, root / "vectors.lance")
    _write_history(root, people)
    _write_broken(root)


def _write_history(root: Path, people: pa.Table) -> None:
    """1 three rows, tagged `first`; 2 three more; 3 one deleted; 4 a new column."""
    table = lance.write_dataset(people, root / "history.lance")
    table.tags.create("first", 1)
    table = lance.write_dataset(people, root / "history.lance", mode="append")
    table.delete("id = 2")
    table.add_columns({"double": "id * 2"})


def _write_broken(root: Path) -> None:
    versions = root / "broken.lance" / "_versions"
    versions.mkdir(parents=True)
    (versions / "18446744073709551614.manifest").write_bytes(b"not a Lance manifest")
