"""`irc-bridge deregistered` and `irc-bridge expire` on purged tables, as people and programs run them."""

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract_tests.cli.conftest import Run
from contract_tests.cli.test_commands import refused
from contract_tests.directory.opened import MODES, Directory, append, names, new_table, open_in, path_of, versions
from contract_tests.worlds.bridge import SCHEMA, Server

HOUR_MS = 3_600_000
T, U = ("t",), ("u",)


@pytest.fixture(params=sorted(MODES))
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def settings(tmp_path: Path, mode: str = "compat", **more: str) -> None:
    lines = [f"warehouses.main.{key} = {str(value).lower()}" for key, value in MODES[mode].items()]
    lines += [f"warehouses.main.{key} = {value}" for key, value in more.items()]
    (tmp_path / "irc-bridge.toml").write_text("\n".join(['warehouses.main.root = "tables"', *lines]))


def opened(tmp_path: Path, mode: str = "compat") -> Directory:
    (tmp_path / "tables").mkdir(exist_ok=True)
    return open_in(mode, tmp_path / "tables")


def made(catalog: Directory, *tables: tuple[str, ...]) -> list[Path]:
    infos = [catalog.create_table(each, new_table()) for each in tables]
    for each in infos:
        append(each, 1)
    return [Path(path_of(each)) for each in infos]


def listed(done: subprocess.CompletedProcess[str]) -> dict[str, str | None]:
    assert done.returncode == 0, done.stderr
    return {row["table"]: row["removed_after"] for row in json.loads(done.stdout)}


def test_it_is_listed_with_its_time(run: Run, tmp_path: Path, mode: str) -> None:
    settings(tmp_path, mode)
    catalog = opened(tmp_path, mode)
    folders = made(catalog, T, U, ("v",), ("w",), ("x",))
    before = datetime.now(UTC)
    catalog.purge_table(T, HOUR_MS)
    catalog.purge_table(U, None)
    catalog.purge_table(("v",), HOUR_MS)
    append(catalog.register_table(("v",), str(folders[2])), 2)
    catalog.deregister_table(("v",))
    catalog.purge_table(("w",), HOUR_MS)
    import lance

    from contract_tests.directory.opened import rows

    lance.write_dataset(rows(7), str(folders[3]), mode="append")
    shown = listed(run("deregistered", "--output", "json"))
    assert shown.pop("u") == "never"
    assert shown.pop("v") is None
    assert shown.pop("w") == "changed since it was purged, stays"
    due = datetime.fromisoformat(str(shown.pop("t")))
    assert before <= due - timedelta(hours=1) + timedelta(seconds=1)
    assert due - timedelta(hours=1) <= datetime.now(UTC)
    assert shown == {}
    lines = [line.split() for line in run("deregistered").stdout.splitlines()]
    assert lines[0] == ["WAREHOUSE", "TABLE", "LOCATION", "REMOVED_AFTER"]
    assert ["main", "u", folders[1].as_uri(), "never"] in lines


def test_expire_removes_what_is_due(run: Run, tmp_path: Path, mode: str) -> None:
    settings(tmp_path, mode)
    catalog = opened(tmp_path, mode)
    due, later, never, only_deregistered, there = made(catalog, T, U, ("v",), ("w",), ("x",))
    catalog.purge_table(U, HOUR_MS)
    catalog.purge_table(("v",), None)
    catalog.deregister_table(("w",))
    catalog.purge_table(T, 1)
    done = run("expire", "--all", "--output", "json")
    assert done.returncode == 0, done.stderr
    assert [row["table"] for row in json.loads(done.stdout)] == ["main.default.x"]
    assert done.stderr.splitlines() == [f"main.default.t: purged, its files at {due.as_uri()} are removed"]
    assert [each.exists() for each in (due, later, never, only_deregistered, there)] == [False, *[True] * 4]
    assert set(listed(run("deregistered", "--output", "json"))) == {"u", "v", "w"}
    assert versions(catalog.register_table(U, str(later))) == [1, 2]


def test_one_that_was_changed_stays(run: Run, tmp_path: Path) -> None:
    import lance

    settings(tmp_path)
    catalog = opened(tmp_path)
    changed, other = made(catalog, T, U)
    for each in (T, U):
        catalog.purge_table(each, 1)
    lance.write_dataset(lance.dataset(changed).to_table(), changed, mode="append")
    done = run("expire", "--all")
    assert done.returncode == 1
    assert f"{changed.as_uri()} was changed after it was purged" in done.stderr
    assert (changed.exists(), other.exists()) == (True, False)


class TestNow:
    def test_before_its_time(self, run: Run, tmp_path: Path, mode: str) -> None:
        settings(tmp_path, mode)
        catalog = opened(tmp_path, mode)
        folder, other = made(catalog, T, U)
        catalog.purge_table(T, HOUR_MS)
        catalog.purge_table(U, None)
        done = run("expire", "--now", "main.default.t", "--output", "json")
        assert json.loads(done.stdout) == [
            {"table": "main.default.t", "location": folder.as_uri(), "outcome": "removed"}
        ]
        assert (folder.exists(), other.exists()) == (False, True)
        assert versions(catalog.create_table(T, new_table())) == [1]

    def test_a_table_that_was_only_deregistered(self, run: Run, tmp_path: Path, mode: str) -> None:
        settings(tmp_path, mode)
        catalog = opened(tmp_path, mode)
        (folder,) = made(catalog, T)
        catalog.deregister_table(T)
        said = refused(run("expire", "--now", "main.default.t"))
        assert "was deregistered and not purged" in said
        assert folder.as_uri() in said
        assert folder.exists()

    def test_a_table_that_is_there(self, run: Run, tmp_path: Path) -> None:
        settings(tmp_path)
        (folder,) = made(opened(tmp_path), T)
        assert "is a table: drop it with purge" in refused(run("expire", "--now", "main.default.t"))
        assert folder.exists()

    def test_one_that_came_back(self, run: Run, tmp_path: Path) -> None:
        settings(tmp_path)
        catalog = opened(tmp_path)
        (folder,) = made(catalog, T)
        catalog.purge_table(T, HOUR_MS)
        catalog.register_table(T, str(folder))
        assert "is a table" in refused(run("expire", "--now", "main.default.t"))
        assert names(catalog) == ["t"]

    def test_none_of_the_name(self, run: Run, tmp_path: Path) -> None:
        settings(tmp_path)
        opened(tmp_path)
        assert "There is no purged table main.default.t" in refused(run("expire", "--now", "main.default.t"))

    def test_it_needs_a_name(self, run: Run, tmp_path: Path) -> None:
        settings(tmp_path)
        for arguments in (["--now"], ["--now", "--all"]):
            done = run("expire", *arguments)
            assert done.returncode == 2
            assert "--now needs the names of purged tables" in done.stderr


def test_a_read_only_warehouse_removes_nothing(run: Run, tmp_path: Path) -> None:
    settings(tmp_path, read_only="true")
    catalog = opened(tmp_path)
    (folder,) = made(catalog, T)
    catalog.purge_table(T, 1)
    note = "main is read-only: the files of its purged tables stay"
    done = run("expire", "--all")
    assert done.returncode == 0
    assert note in done.stderr
    assert note in refused(run("expire", "--now", "main.default.t"))
    with Server("--port", "0", cwd=tmp_path) as server, server.client() as client:
        assert client.tables(("default",)) == []
    assert "removed" not in server.text()
    assert folder.exists()


def test_the_command_that_a_refused_create_names(run: Run, tmp_path: Path) -> None:
    """Without a manifest a name has one folder."""
    settings(tmp_path, "v1", root_namespace='"my.space"')
    (tmp_path / "tables").mkdir()
    with Server("--port", "0", cwd=tmp_path) as server, server.client() as client:
        path = "namespaces/my.space/tables"
        body = {"name": "a.b", "schema": SCHEMA}
        assert client.post(path, json=body).status_code == 200
        assert client.delete(f"{path}/a.b", params={"purgeRequested": "true"}).status_code == 204
        said = client.post(path, json=body)
        assert said.status_code == 409
        command = re.search(r"irc-bridge (expire --now \S+)", said.json()["error"]["message"])
        assert command, said.text
        done = run(*shlex.split(command[1]))
        assert done.returncode == 0, done.stderr
        assert client.post(path, json=body).status_code == 200


def test_a_server_removes_what_was_due_before_it_came(tmp_path: Path) -> None:
    settings(tmp_path)
    catalog = opened(tmp_path)
    folder, other = made(catalog, T, U)
    catalog.purge_table(T, 1)
    catalog.purge_table(U, HOUR_MS)
    with Server("--port", "0", "--workers", "2", cwd=tmp_path) as server:
        server.wait_for(lambda line: "is due" in line and folder.as_uri() in line)
    assert (folder.exists(), other.exists()) == (False, True)
    assert "WARNING" not in server.text()


def test_what_cannot_be_removed_is_said_once(tmp_path: Path) -> None:
    import lance

    settings(tmp_path)
    catalog = opened(tmp_path)
    changed, *others = made(catalog, T, U, ("v",))
    catalog.purge_table(T, 1)
    lance.write_dataset(lance.dataset(changed).to_table(), changed, mode="append")
    with Server("--port", "0", cwd=tmp_path) as server, server.client() as client:
        server.wait_for(lambda line: "WARNING" in line and "was changed after it was purged" in line)
        for name, folder in zip("uv", others, strict=True):
            # each purge makes the server look again
            client.delete(f"namespaces/default/tables/{name}", params={"purgeRequested": "true"})
            assert folder.exists()
    assert server.text().count("was changed after it was purged") == 1
    assert changed.exists()
