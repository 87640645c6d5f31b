"""The image of the jobs: it mirrors a folder that a container of the server serves."""

import json
import os
from pathlib import Path

from pyiceberg.catalog import load_catalog

from contract_tests.containers.conftest import ON_A_VOLUME
from contract_tests.worlds.containers import USER, bridge_image
from contract_tests.worlds.engine import run_docker
from contract_tests.worlds.writer import rows, write


def test_an_engine_reads_what_a_container_has_mirrored(engine: str, tmp_path: Path) -> None:
    with ON_A_VOLUME.start(tmp_path) as bridge:
        mask = os.umask(0)
        try:
            write(tmp_path / "tables/t.lance", rows(5))
            write(tmp_path / "tables/t.lance", rows(3, 5), mode="append")
        finally:
            os.umask(mask)
        settings = tmp_path / "irc-bridge.toml"
        done = run_docker(
            *(
                "run",
                "--rm",
                "--read-only",
                "--tmpfs=/tmp:exec",
                "--cap-drop=ALL",
                f"--user={USER}",
                "--memory=2g",
            ),
            f"--volume={settings}:/etc/irc-bridge/irc-bridge.toml:ro",
            f"--volume={tmp_path}/tables:{tmp_path}/tables",
            *(bridge_image("jobs"), "mirror", "--all", "--versions", "all", "--output", "json"),
        )
        (report,) = json.loads(done.stdout)
        assert report["table"] == "main.default.t"
        catalog = load_catalog("c", type="rest", uri=bridge.server.url, warehouse="main")
        table = catalog.load_table("default.t")
        assert table.scan().to_arrow().sort_by("id").to_pylist() == rows(8).to_pylist()
        assert table.scan(snapshot_id=1).to_arrow().num_rows == 5
