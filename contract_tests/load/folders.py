"""The folders that are measured, built anew for each run."""

import shutil
from pathlib import Path

import lance
import pyarrow as pa
from lance.namespace import DirectoryNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest

MANY_VERSIONS = 10_000
MANY_NAMES = 10_000
MANY_TABLES = 2_000
FOLDER_OF = 200
COLUMNS = 50
LISTED = 100

TYPES = [pa.int64(), pa.string(), pa.float64(), pa.timestamp("us"), pa.list_(pa.float32(), 16)]
WIDE = pa.schema([pa.field(f"column_{n}", TYPES[n % len(TYPES)]) for n in range(COLUMNS)])


def build(root: Path) -> None:
    """`tables` (200 of them, among them `wide`, `ten` and `ten_thousand`), `thousands` and two manifests."""
    _tables(root / "tables")
    _thousands(root / "thousands")
    _names(root / "names_100", 100)
    _names(root / "names_10000", MANY_NAMES)


def _tables(root: Path) -> None:
    wide = lance.write_dataset(_rows(WIDE), root / "wide.lance", schema=WIDE)
    while wide.version < 100:
        wide = lance.write_dataset(_rows(WIDE), root / "wide.lance", mode="append")
    for name, versions in (("ten", 10), ("ten_thousand", MANY_VERSIONS)):
        table = _small(root / f"{name}.lance")
        table.tags.create("first", 1)
        while table.version < versions:
            table.update_metadata({"step": str(table.version)})
    for n in range(FOLDER_OF - 3):
        _small(root / f"small_{n}.lance")


def _thousands(root: Path) -> None:
    lance.write_dataset(_rows(WIDE), root / "t0.lance", schema=WIDE)
    for n in range(1, MANY_TABLES):
        shutil.copytree(root / "t0.lance", root / f"t{n}.lance")


def _names(root: Path, count: int) -> None:
    """One row from Lance itself, the rest in its image: nobody opens the tables."""
    namespace = DirectoryNamespace(root=str(root))
    namespace.create_namespace(CreateNamespaceRequest(id=["ns"]))
    namespace.declare_table(DeclareTableRequest(id=["ns", "t00000"]))
    manifest = lance.dataset(root / "__manifest")
    rows = manifest.to_table().to_pylist()
    (table,) = [row for row in rows if row["object_type"] == "table"]
    names = [f"ns$t{n:05}" for n in range(1, count)]
    rows += [{**table, "object_id": name, "location": f"00000000_{name}"} for name in names]
    listed = pa.Table.from_pylist(rows, schema=manifest.schema)
    lance.write_dataset(listed, root / "__manifest", mode="overwrite")


def declared(root: Path, count: int) -> None:
    """Declared tables `t0`, `t1` ... in `ns` and LISTED ones in `small`: one by Lance itself, the rest like it."""
    namespace = DirectoryNamespace(root=str(root), dir_listing_enabled="false")
    for name in ("ns", "small"):
        namespace.create_namespace(CreateNamespaceRequest(id=[name]))
    namespace.declare_table(DeclareTableRequest(id=["ns", "t0"]))
    manifest = lance.dataset(root / "__manifest")
    rows = manifest.to_table().to_pylist()
    (table,) = [row for row in rows if row["object_type"] == "table"]
    names = [f"ns$t{n}" for n in range(1, count)] + [f"small$t{n}" for n in range(LISTED)]
    made = [{**table, "object_id": name, "location": f"00000000_{name}"} for name in names]
    for row in made:
        shutil.copytree(root / table["location"], root / row["location"])
    whole = pa.Table.from_pylist(rows + made, schema=manifest.schema)
    lance.write_dataset(whole, root / "__manifest", mode="overwrite")


def _small(path: Path) -> lance.LanceDataset:
    return lance.write_dataset(pa.table({"id": [1], "name": ["a"]}), path)


def _rows(schema: pa.Schema) -> pa.Table:
    return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
