"""Settings of a warehouse that another server keeps."""

import json

import pytest

from contract_tests.cli.test_settings import load, refusal
from irc_bridge.backends.upstream.settings import UpstreamSettings

LAKE = '[warehouses.lake]\nbackend = "irc"\nuri = "http://127.0.0.1:8282"\n'


def lake(more: str = "", **environment: str) -> UpstreamSettings:
    settings = load(LAKE + more, None, None, **environment).warehouses["lake"]
    assert isinstance(settings, UpstreamSettings)
    return settings


def test_a_uri_is_enough() -> None:
    settings = lake()
    assert settings.uri == "http://127.0.0.1:8282"
    assert (settings.warehouse, settings.token, settings.credential, settings.auth) == (None, None, None, None)
    assert (settings.connect_timeout, settings.read_timeout) == (10, 60)


def test_timeouts_are_durations() -> None:
    settings = lake(WAREHOUSES__LAKE__CONNECT_TIMEOUT="250ms", WAREHOUSES__LAKE__READ_TIMEOUT="2m")
    assert (settings.connect_timeout, settings.read_timeout) == (0.25, 120)


def test_no_folder_is_made_up_for_it() -> None:
    assert set(load(LAKE).warehouses) == {"lake"}
    assert lake().root is None


@pytest.mark.parametrize("uri", ["http://host:1", "http://host:1/", "http://host:1/v1", "http://host:1/v1/"])
def test_the_uri_may_end_where_the_protocol_begins(uri: str) -> None:
    assert lake(WAREHOUSES__LAKE__URI=uri).uri == "http://host:1"


@pytest.mark.parametrize("uri", ["", "host:1", "ftp://host", "http://", "http://host/?a=b", "http://a b"])
def test_a_uri_that_leads_nowhere_is_refused(uri: str) -> None:
    assert "warehouses.lake.uri" in refusal(LAKE, WAREHOUSES__LAKE__URI=uri)


def test_it_needs_a_uri() -> None:
    assert "warehouses.lake.uri is required" in refusal('[warehouses.lake]\nbackend = "irc"\n')


@pytest.mark.parametrize(
    "more",
    [
        'token = "a"\ncredential = "b:c"\n',
        'token = "a"\nauth = "passthrough"\n',
        'credential = "b:c"\nauth = "passthrough"\n',
    ],
)
def test_there_is_one_identity(more: str) -> None:
    message = refusal(LAKE + more)
    assert "exclude each other" in message
    assert all(line.split(" = ")[0] in message for line in more.splitlines())


def test_a_token_of_this_server_and_identities_passed_through_exclude_each_other() -> None:
    message = refusal(f'[server]\ntoken = "t"\n{LAKE}auth = "passthrough"\n')
    assert "server.token" in message and "warehouses.lake.auth" in message
    load(f'[server]\ntoken = "t"\n{LAKE}token = "u"\n')


@pytest.mark.parametrize("name", ["connect_timeout", "read_timeout"])
@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_a_time_out_is_a_number_of_seconds(name: str, value: str) -> None:
    assert f"warehouses.lake.{name}" in refusal(LAKE, **{f"WAREHOUSES__LAKE__{name.upper()}": value})


def test_what_belongs_to_a_folder_is_refused() -> None:
    assert "warehouses.lake.manifest_enabled" in refusal(f"{LAKE}manifest_enabled = true\n")


def test_no_secret_is_shown() -> None:
    more = 'credential = "me:hush-1"\nheaders.X-Realm = "hush-2"\nstorage.aws_secret_access_key = "hush-3"\n'
    settings = load(LAKE + more)
    shown = json.dumps(settings.rows())
    assert "hush" not in shown and "hush" not in repr(settings)
    assert {row["key"] for row in settings.rows() if row["value"] == "********"} == {
        "warehouses.lake.credential",
        "warehouses.lake.headers.X-Realm",
        "warehouses.lake.storage.aws_secret_access_key",
    }
