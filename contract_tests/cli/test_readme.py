import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from contract_tests.cli.conftest import Demo, Run
from contract_tests.worlds.bridge import Server
from irc_bridge.backends import settings_models
from irc_bridge.backends.directory.settings import DirectorySettings
from irc_bridge.backends.upstream.settings import UpstreamSettings
from irc_bridge.settings import ServerSettings, load_settings

PROJECT = Path(__file__).parents[2]
README = (PROJECT / "README.md").read_text("utf-8")
GUIDES = [
    PROJECT / link for link in re.findall(r"^\| \[.*?\]\((irc_bridge/.*?README\.md)\)", README, re.MULTILINE)
]
PAGES = "\n".join([README, *(guide.read_text("utf-8") for guide in GUIDES)])
"""The README, and the guides that its table names."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES, re.DOTALL | re.MULTILINE)


COMMANDS = [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines() if line]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_runs(command: list[str], run: Run, tmp_path: Path) -> None:
    match command:
        case ["make", target]:  # dry: it would install, or run these tests
            done = subprocess.run(["make", "-n", target], cwd=PROJECT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        case ["irc-bridge", "serve", root]:
            with Server(root, "--port", "0", cwd=tmp_path) as server:
                assert "warehouse main" in server.wait_for(lambda line: "warehouse" in line)
        case ["irc-bridge", "migrate", folder, *_]:
            (tmp_path / folder).mkdir()
            assert run(*command[1:]).returncode == 0
        case ["irc-bridge", "import" | "mirror" | "verify" | "expire" as job, *arguments]:
            # contract_tests/pipeline runs it
            assert run(job, *arguments, "--help").returncode == 0
        case ["irc-bridge", *arguments]:
            assert run(*arguments).returncode == 0
        case _:
            pytest.fail(f"nobody tries {command}")


def test_every_guide_is_reached_from_the_readme() -> None:
    others = {PROJECT / "irc_bridge" / "README.md"}
    assert set(GUIDES) == {*PROJECT.glob("irc_bridge/**/README.md")} - others
    for page in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *GUIDES):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert (page.parent / link).is_file(), f"{page} links to {link}"


def test_the_session_prints_what_its_comments_say(demo: Demo) -> None:
    session = "\n".join(blocks("python")).replace("http://127.0.0.1:8181", demo.url)
    assert demo.url in session
    done = subprocess.run([sys.executable, "-W", "error", "-c", session], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    promised = re.findall(r"# (\[.*\])$", session, re.MULTILINE)
    assert len(promised) == 2
    assert done.stdout.splitlines()[: len(promised)] == promised
    assert "first-day" in done.stdout
    assert "pyarrow.Table" in done.stdout


def test_the_settings_files_of_the_readme_are_such(tmp_path: Path) -> None:
    both = []
    for text in blocks("toml"):
        (tmp_path / "x.toml").write_text(text)
        both.append(load_settings(tmp_path / "x.toml", {}, {}, settings_models()))
    lake, folder = both
    assert folder.server.port == 8282
    assert folder.warehouses["main"].storage == lake.warehouses["lake"].storage == {"region": "us-west-2"}
    assert isinstance(lake.warehouses["lake"], UpstreamSettings)


def test_the_variables_of_the_readme_are_settings() -> None:
    variables = dict(re.findall(r"`(IRC_BRIDGE__[A-Z_]+)=([^`]+)`", PAGES))
    assert len(variables) == 2
    assert load_settings(None, variables, {}, settings_models()).server.port == 8282


def test_the_table_of_settings_is_complete() -> None:
    tables = "\n".join(each.read_text("utf-8") for each in GUIDES if each.parent.name in ("server", "upstream"))
    rows = dict(re.findall(r"^\| `([a-zA-Z0-9_.]+)` \| (.*?) \|", tables, re.MULTILINE))
    fields = {f"server.{name}": field for name, field in ServerSettings.model_fields.items()}
    fields |= {f"warehouses.NAME.{name}": field for name, field in DirectorySettings.model_fields.items()}
    fields |= {
        name: field
        for name, field in UpstreamSettings.model_fields.items()
        if name == "root" or name not in DirectorySettings.model_fields
    }
    for table, key in (("warehouses.NAME.storage", ".KEY"), ("headers", ".NAME")):
        assert fields.pop(table).default == {}
        assert rows.pop(table + key) == "none"
    wanted = {}
    for key, field in fields.items():
        default = str(field.default).lower() if isinstance(field.default, bool) else field.default
        wanted[key] = "required" if field.is_required() else "none" if default in (None, ()) else f"`{default}`"
    assert rows == wanted


def test_the_make_target_runs_the_command_of_the_demo() -> None:
    done = subprocess.run(
        ["make", "-n", "demo", "PORT=9"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert "irc-bridge demo --port 9" in done.stdout
