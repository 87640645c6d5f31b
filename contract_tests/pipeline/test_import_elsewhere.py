"""Imports into warehouses that are no folder of this machine."""

from pathlib import Path

import lance
import pytest
import requests

from contract_tests.pipeline.conftest import Import
from contract_tests.pipeline.tables import T, contents
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.servers import reference_server
from contract_tests.worlds.spark import LEAVES_SOCKETS
from irc_bridge.errors import InvalidInput

pytestmark = LEAVES_SOCKETS

ROWS = "SELECT id, array(1F, 2F) AS vector FROM range(0, 20, 1, 2)"
CHANGED = "SELECT id, array(3F) AS vector FROM range(19, 21)"
UPSERT = ("--mode", "upsert", "--key", "id")


def test_s3(run_import: Import, root: Path, tmp_path: Path, s3: S3) -> None:
    bucket = s3.bucket("import")
    options = "".join(f'storage.{key} = "{value}"\n' for key, value in s3.options.items())
    (tmp_path / "irc-bridge.toml").write_text(f'[warehouses.main]\nroot = "{bucket}/lake"\n{options}')
    run_import(ROWS, T, "--format", "sql")
    report = run_import(CHANGED, T, "--format", "sql", *UPSERT)
    assert (report["version"], report["replaced"]) == (2, 1)
    where = f"{bucket}/lake/t.lance"
    made = lance.dataset(where, storage_options=dict(s3.options))
    assert [row["vector"] for row in contents(made)] == 19 * [[1.0, 2.0]] + 2 * [[3.0]]
    folder = s3.folder / bucket.removeprefix("s3://") / "lake/t.lance/data"
    before = set(folder.iterdir())
    with pytest.raises(InvalidInput, match="key is null"):
        run_import("SELECT IF(id = 1, NULL, id) AS id FROM range(3)", T, "--format", "sql", *UPSERT)
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("managed_by", ["storage", "impl"])
def test_another_server(run_import: Import, root: Path, tmp_path: Path, managed_by: str, spark: object) -> None:
    try:
        server = reference_server(tmp_path, {"jdbc.strict-mode": "true"})
        url = server.__enter__()
    except CannotRun as reason:
        pytest.skip(str(reason))
    try:
        requests.post(f"{url}/v1/namespaces", json={"namespace": ["ns"]}, timeout=60).raise_for_status()
        (tmp_path / "irc-bridge.toml").write_text(
            f'[warehouses.lake]\nbackend = "irc"\nuri = "{url}"\ndefault_managed_by = "{managed_by}"\n'
        )
        run_import(ROWS, "lake.ns.t", "--format", "sql")
        run_import(CHANGED, "lake.ns.t", "--format", "sql")
        report = run_import(CHANGED, "lake.ns.t", "--format", "sql", *UPSERT)
        assert (report["version"], report["replaced"]) == (3, 3)
        loaded = requests.get(f"{url}/v1/namespaces/ns/tables/t", timeout=60).json()["metadata"]
        assert loaded["properties"].get("managed_by", "storage") == managed_by
        if managed_by == "impl":
            assert loaded["current-snapshot-id"] == 3
        assert [row["id"] for row in contents(lance.dataset(loaded["location"]))] == list(range(21))
    finally:
        server.__exit__(None, None, None)
