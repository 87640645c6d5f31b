"""Secrets that come from files, as containers get them."""

from pathlib import Path

import pytest

from contract_tests.cli.conftest import Run
from contract_tests.cli.test_settings import ROOT, load, refusal, row
from contract_tests.conftest import Start
from contract_tests.worlds.bridge import Client
from irc_bridge.backends.upstream.settings import UpstreamSettings

SECRET = "s3cr3t-0123456789"
LAKE = '[warehouses.lake]\nbackend = "irc"\nuri = "http://127.0.0.1:9"\n'


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    return tmp_path / "secret"


def test_the_token_comes_from_a_file(secret: Path) -> None:
    for settings in (
        load(f'server.token_file = "{secret}"\n{ROOT}'),
        load(SERVER__TOKEN_FILE=str(secret)),
    ):
        assert settings.server.token is not None
        assert settings.server.token.get_secret_value() == SECRET
        value, source = row(settings, "server.token")
        assert value == "********"
        assert str(secret) in source


@pytest.mark.parametrize("key", ["token", "credential"])
def test_the_identity_before_another_server_comes_from_a_file(secret: Path, key: str) -> None:
    in_environment = load(LAKE, None, None, **{f"WAREHOUSES__LAKE__{key.upper()}_FILE": str(secret)})
    for settings in (load(f'{LAKE}{key}_file = "{secret}"\n'), in_environment):
        lake = settings.warehouses["lake"]
        assert isinstance(lake, UpstreamSettings)
        assert getattr(lake, key).get_secret_value() == SECRET


def test_a_storage_option_comes_from_a_file(secret: Path) -> None:
    in_file = load(f'{ROOT}storage.aws_secret_access_key_file = "{secret}"\n')
    in_environment = load(WAREHOUSES__MAIN__STORAGE__AWS_SECRET_ACCESS_KEY_FILE=str(secret))
    for settings in (in_file, in_environment):
        assert settings.warehouses["main"].storage == {"aws_secret_access_key": SECRET}
        assert SECRET not in str(settings.rows())


def test_a_header_comes_from_a_file(secret: Path) -> None:
    lake = load(f'{LAKE}headers.X-Api-Key_file = "{secret}"\n').warehouses["lake"]
    assert isinstance(lake, UpstreamSettings)
    assert lake.headers == {"X-Api-Key": SECRET}


@pytest.mark.parametrize("key", ["aws_web_identity_token_file", "azure_federated_token_file"])
def test_a_storage_option_that_is_the_name_of_a_file_stays_one(key: str) -> None:
    assert load(f'{ROOT}storage.{key} = "/gone"\n').warehouses["main"].storage == {key: "/gone"}


def test_a_secret_and_its_file_exclude_each_other_in_one_place(secret: Path) -> None:
    message = refusal(f'[server]\ntoken = "{SECRET}"\ntoken_file = "{secret}"\n')
    assert "server.token " in message and "server.token_file " in message
    assert SECRET not in message


def test_the_environment_wins_over_the_file_whichever_of_the_two_has_the_secret(secret: Path) -> None:
    by_value = load(f'server.token_file = "{secret}"\n{ROOT}', SERVER__TOKEN="another")
    assert by_value.server.token is not None
    assert by_value.server.token.get_secret_value() == "another"
    by_file = load(f'server.token = "another"\n{ROOT}', SERVER__TOKEN_FILE=str(secret))
    assert by_file.server.token is not None
    assert by_file.server.token.get_secret_value() == SECRET


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), (b" \n", "it is empty"), (b"\xff\xfe", "no UTF-8")]
)
def test_a_file_that_holds_no_secret_is_refused_with_its_name(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    message = refusal(SERVER__TOKEN_FILE=str(file))
    assert message.startswith("server.token_file (environment IRC_BRIDGE__SERVER__TOKEN_FILE)")
    assert str(file) in message and reason in message


def test_a_wrong_token_in_a_file_is_no_part_of_the_error(secret: Path) -> None:
    secret.write_text(f"{SECRET} and more\n")
    message = refusal(SERVER__TOKEN_FILE=str(secret))
    assert "visible ASCII" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    "key", ["server.port_file", "warehouses.main.root_file", "warehouses.main.credential_file"]
)
def test_what_is_no_secret_has_no_file(key: str) -> None:
    assert f"Unknown setting {key} " in refusal(f'{key} = "x"\nwarehouses.main.root = "tables"\n')


def test_with_a_token_from_a_file_others_reach_the_server(start: Start, run: Run, secret: Path) -> None:
    server = start(arguments=("--host", "0.0.0.0"), environment={"IRC_BRIDGE__SERVER__TOKEN_FILE": str(secret)})
    assert Client(server.url, None).get("config").status_code == 401
    with Client(server.url, None, SECRET) as client:
        assert client.get("config").status_code == 200
    assert SECRET not in server.text()
    shown = run("config", IRC_BRIDGE__SERVER__TOKEN_FILE=str(secret)).stdout
    assert SECRET not in shown and str(secret) in shown
