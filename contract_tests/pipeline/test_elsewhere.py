"""Jobs on warehouses that are no folder of this machine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import lance
import pytest
import requests
from pyiceberg.catalog import load_catalog

from contract_tests.pipeline.cluster import Environment
from contract_tests.pipeline.commands import BRIDGE, running, until
from contract_tests.pipeline.conftest import Commands, Import
from contract_tests.pipeline.tables import T, contents
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.process import free_port
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
def test_another_server(run: Commands, run_import: Import, root: Path, tmp_path: Path, managed_by: str) -> None:
    with another_server(tmp_path) as url:
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
        require_mirrored(run, tmp_path, loaded["location"])


def require_mirrored(run: Commands, folder: Path, location: str) -> None:
    """What a bridge shows then of the table is what pyiceberg reads, and `verify` compares."""
    (mirrored,) = run("mirror", "lake.ns.t", "--versions", "all")
    assert (mirrored["versions"], mirrored["mirrored"], mirrored["latest"]) == (3, 3, 3)
    with Server("--port", "0", cwd=folder) as server:
        table = load_catalog("irc", uri=server.url, warehouse="lake").load_table("ns.t")
        for version in (1, 2, 3):
            found = table.scan(snapshot_id=version).to_arrow().to_pylist()
            assert sorted(found, key=str) == sorted(
                lance.dataset(location, version).to_table().to_pylist(), key=str
            )
        assert table.scan().count() == 21
    compared = run("verify", "lake.ns.t")
    assert {each["version"] for each in compared} == {3}
    assert (compared[0]["compared"], compared[0]["lance"]) == ("number of rows", "21")
    assert all(each["equal"] for each in compared)
    (expired,) = run("expire", "lake.ns.t")
    assert (expired["versions"], expired["waiting"]) == (0, 0)


def test_a_mirror_follows_while_the_server_is_away(
    run_import: Import, root: Path, tmp_path: Path, environment: Environment
) -> None:
    port = free_port()
    follow = [*BRIDGE, "mirror", "lake.ns.t", "--follow", "--every", "0.1"]
    with ExitStack() as stack:
        with another_server(tmp_path, port) as url:
            (tmp_path / "irc-bridge.toml").write_text(f'[warehouses.lake]\nbackend = "irc"\nuri = "{url}"\n')
            run_import(ROWS, "lake.ns.t", "--format", "sql")
            loaded = requests.get(f"{url}/v1/namespaces/ns/tables/t", timeout=60).json()
            location = loaded["metadata"]["location"]
            mirrored = Path(location.removeprefix("file:"), "_iceberg/versions")
            process = stack.enter_context(running(tmp_path, follow, environment))
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Looking for new versions")
            until(lambda: len(list(mirrored.glob("*"))) == 1, process)
        assert f"{url} " in (said := process.stderr.readline()) and said.endswith(" Trying again.\n"), said
        lance.write_dataset(lance.dataset(location).to_table(), location, mode="append")
        with another_server(tmp_path, port):
            until(lambda: len(list(mirrored.glob("*"))) == 2, process)


@contextmanager
def another_server(folder: Path, port: int | None = None) -> Iterator[str]:
    """With the namespace `ns`."""
    try:
        with reference_server(folder, {"jdbc.strict-mode": "true"}, port) as url:
            requests.post(f"{url}/v1/namespaces", json={"namespace": ["ns"]}, timeout=60)
            yield url
    except CannotRun as reason:
        pytest.skip(str(reason))
