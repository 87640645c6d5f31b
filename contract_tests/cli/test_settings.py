import json
import string
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc_bridge.backends import settings_models
from irc_bridge.errors import InvalidInput
from irc_bridge.settings import Layer, Settings, Value, load_settings

SETTINGS = {
    "server.host": ("10.0.0.1", "10.0.0.2", "10.0.0.3"),
    "server.port": (1, 2, 3),
    "server.max_body_bytes": (1, 2, 3),
    "server.workers": (1, 2, 3),
    "warehouses.main.root": ("a", "b", "c"),
    "warehouses.main.manifest_enabled": (False, True, False),
    "warehouses.main.root_namespace": ("a", "b", "c"),
    "warehouses.main.storage.region": ("a", "b", "c"),
}
ROOT = '[warehouses.main]\nroot = "tables"\n'


@contextmanager
def file_with(text: str) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "some.toml"
        path.write_text(text, "utf-8")
        yield path


def load(text: str = ROOT, flags: Layer | None = None, root: str | None = None, **environment: str) -> Settings:
    with file_with(text) as path:
        named = {f"IRC_BRIDGE__{name}": value for name, value in environment.items()}
        return load_settings(path, named, flags or {}, settings_models(), root)


def refusal(text: str = ROOT, root: str | None = None, **environment: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        load(text, None, root, **environment)
    assert "\n" not in refused.value.message
    return refused.value.message


def row(settings: Settings, key: str) -> tuple[object, str]:
    found = {row["key"]: (row["value"], row["source"]) for row in settings.rows()}
    value, source = found[key]
    return value, source


@given(
    key=st.sampled_from(sorted(SETTINGS.keys() - {"warehouses.main.root"})),
    layers=st.sets(st.sampled_from(["file", "environment", "flag"]), min_size=1),
)
def test_a_flag_wins_over_the_environment_and_that_over_the_file(key: str, layers: set[str]) -> None:
    in_file, in_environment, in_flag = SETTINGS[key]
    text = f"{key} = {json.dumps(in_file)}\n" if "file" in layers else ""
    environment = {key.replace(".", "__").upper(): str(in_environment)} if "environment" in layers else {}
    flags = {tuple(key.split(".")): Value(in_flag, "--flag")} if "flag" in layers else {}
    settings = load(f'{text}warehouses.main.root = "tables"\n', flags, **environment)
    value, source = row(settings, key)
    if "flag" in layers:
        assert (value, source) == (in_flag, "--flag")
    elif "environment" in layers:
        assert (value, source) == (in_environment, f"environment IRC_BRIDGE__{key.replace('.', '__').upper()}")
    else:
        assert (value, Path(source).name) == (in_file, "some.toml")


def test_what_nobody_sets_has_the_default() -> None:
    settings = load()
    assert settings.server.model_dump() == {
        "host": "127.0.0.1", "port": 8181, "token": None, "max_body_bytes": 33554432,
        "max_create_body_bytes": 268435456, "max_connections": 10_000, "idle_timeout": 75.0,
        "request_timeout": 30.0, "workers": 1, "allowed_origins": (), "trusted_proxies": (),
    }  # fmt: skip
    assert settings.warehouses["main"].model_dump() == {
        "backend": "dir", "root": "tables", "manifest_enabled": True, "dir_listing_enabled": True,
        "table_version_management": False, "root_namespace": "default", "default_managed_by": "storage",
        "read_only": False, "mirror_lag": "serve-mirrored",
        "vend_credentials": False, "storage": {},
        "guard_snapshot": True, "allow_expire": False, "purge_after": "7d", "schema_ids": "first-version",
        "allowed_locations": (),
    }  # fmt: skip
    assert row(settings, "server.port") == (8181, "default")


def test_without_anything_the_folder_warehouse_is_main(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load_settings(None, {}, {}, settings_models())
    assert row(settings, "warehouses.main.root") == ("./warehouse", "default")


def test_a_file_without_warehouses_leaves_the_default_one() -> None:
    settings = load("[server]\nport = 1\n")
    assert settings.warehouses["main"].root == "./warehouse"
    assert load("[server]\nport = 1\n", root="there").warehouses["main"].root == "there"


def test_the_file_of_the_current_folder_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("irc-bridge.toml").write_text("server.port = 7\n")
    assert row(load_settings(None, {}, {}, settings_models()), "server.port") == (7, "irc-bridge.toml")


def test_root_and_a_file_with_warehouses_do_not_go_together() -> None:
    message = refusal(root="elsewhere")
    assert "elsewhere" in message
    assert "some.toml" in message


def test_root_goes_with_an_environment_that_says_more_about_main() -> None:
    settings = load("", root="there", WAREHOUSES__MAIN__READ_ONLY="true")
    assert settings.warehouses["main"].root == "there"
    assert settings.warehouses["main"].read_only
    assert row(settings, "warehouses.main.root") == ("there", "ROOT")


def test_the_environment_alone_makes_a_warehouse() -> None:
    settings = load("", WAREHOUSES__LAKE__ROOT="s3://b/p", WAREHOUSES__LAKE__STORAGE__REGION="eu")
    assert list(settings.warehouses) == ["lake"]
    assert settings.warehouses["lake"].storage == {"region": "eu"}


def test_the_environment_finds_a_warehouse_whose_name_has_capitals() -> None:
    settings = load('[warehouses.Lake]\nroot = "a"\n', WAREHOUSES__LAKE__ROOT="b")
    assert {name: warehouse.root for name, warehouse in settings.warehouses.items()} == {"Lake": "b"}


@pytest.mark.parametrize("text", ['storage.region = "r"', '"storage.region" = "r"', 'storage = {region = "r"}'])
def test_storage_options_quoted_or_not(text: str) -> None:
    assert load(ROOT + text).warehouses["main"].storage == {"region": "r"}


def test_storage_options_are_texts() -> None:
    text = ROOT + "storage.allow_http = true\nstorage.timeout = 30\nstorage.ratio = 0.5\nstorage.a.b = 'c'\n"
    assert load(text).warehouses["main"].storage == {
        "allow_http": "true", "timeout": "30", "ratio": "0.5", "a.b": "c",
    }  # fmt: skip


names = st.text(string.ascii_lowercase + string.digits + "_", min_size=1)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))


@given(storage=st.dictionaries(names, texts), quoted=st.booleans())
def test_every_storage_option_arrives_as_written(storage: dict[str, str], quoted: bool) -> None:
    lines = [
        f'"storage.{key}" = {json.dumps(value, ensure_ascii=False)}' if quoted
        else f"storage.{key} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in storage.items()
    ]  # fmt: skip
    assert load(ROOT + "\n".join(lines)).warehouses["main"].storage == storage


@st.composite
def misspelled(draw: st.DrawFn) -> tuple[str, str]:
    """A known key and the same with one letter doubled or left out."""
    key = draw(st.sampled_from(sorted(key for key in SETTINGS if "storage" not in key)))
    start = key.rindex(".") + 1
    at = draw(st.sampled_from([each for each in range(start, len(key)) if key[each] != "_"]))
    wrong = draw(st.sampled_from([key[:at] + key[at + 1 :], key[: at + 1] + key[at:]]))
    return key, wrong


@given(misspelled(), st.booleans())
def test_an_unknown_key_is_refused_with_the_nearest_known_one(keys: tuple[str, str], in_file: bool) -> None:
    known, wrong = keys
    if in_file:
        message = refusal(f'{wrong} = 1\nwarehouses.main.root = "tables"\n')
        assert "some.toml" in message
    else:
        message = refusal(**{wrong.replace(".", "__").upper(): "1"})
        assert f"IRC_BRIDGE__{wrong.replace('.', '__').upper()}" in message
    assert f"Unknown setting {wrong} " in message
    assert message.endswith(f"did you mean {known}?")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("servr.port", "server.port"),
        ("port", "server.port"),
        ("warehouse.main.root", "warehouses"),
        ("server.port.extra", "server.port"),
        ("warehouses.main.root.extra", "warehouses.main.root"),
        ("warehouses.main.root_namspace", "warehouses.main.root_namespace"),
    ],
)
def test_a_key_in_the_wrong_place_is_refused(wrong: str, meant: str) -> None:
    assert refusal(f"{wrong} = 1\n").endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("key", ["server", "warehouses", "warehouses.main", "warehouses.main.storage"])
def test_a_table_is_no_value(key: str) -> None:
    assert f"{key} " in refusal(f"{key} = 1\n")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("server.port", '"eighty"', "integer"),
        ("server.port", "true", "integer"),
        ("server.port", "65536", "65535"),
        ("server.port", "-1", "0"),
        ("server.host", "5", "string"),
        ("server.host", '""', "character"),
        ("server.workers", "0", "1"),
        ("server.max_body_bytes", "0", "1"),
        ("server.token", '""', "visible ASCII"),
        ("server.allowed_origins", '["https://a.example/"]', "without a path"),
        ("server.allowed_origins", '["*"]', "origins as browsers send them"),
        ("server.allowed_origins", '["https://A.example"]', "lower case"),
        ("server.trusted_proxies", '["proxy.example"]', "IP addresses and networks"),
        ("server.trusted_proxies", '["10.0.0.1/8"]', "IP addresses and networks"),
        ("server.max_connections", "0", "1"),
        ("server.idle_timeout", '"soon"', "such as 90m or 2d"),
        ("server.request_timeout", "0", "0"),
        ("warehouses.main.root", "[]", "string"),
        ("warehouses.main.read_only", '"perhaps"', "boolean"),
        ("warehouses.main.root_namespace", '"a/b"', "name"),
        ("warehouses.main.root_namespace", '"a$b"', "name"),
        ("warehouses.main.root_namespace", '".."', "name"),
        ("warehouses.main.root_namespace", '""', "name"),
        ("warehouses.main.storage.region", "[1]", "string"),
        ("warehouses.main.backend", '"dri"', "'dir'"),
    ],
)
def test_a_wrong_value_is_refused_with_key_source_and_what_is_expected(
    key: str, value: str, expected: str
) -> None:
    root = '\nwarehouses.main.root = "tables"' if key != "warehouses.main.root" else ""
    message = refusal(f"{key} = {value}{root}\n")
    assert message.startswith(key)
    assert "some.toml" in message
    assert expected in message


@pytest.mark.parametrize("text", ["[warehouses.main]\n", "[warehouses.main]\nread_only = true\n"])
def test_a_warehouse_needs_a_root(text: str) -> None:
    assert "warehouses.main.root is required" in refusal(text)


@pytest.mark.parametrize(
    "name", ["namespaces", "tables", "views", "transactions", "config", "oauth", "", "a b", "a/b", "ä", ".", ".."]
)
def test_a_warehouse_name_that_cannot_stand_in_a_url_is_refused(name: str) -> None:
    assert f"named {name!r}" in refusal(f'[warehouses."{name}"]\nroot = "tables"\n')


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"gone\.toml does not exist"):
        load_settings(tmp_path / "gone.toml", {}, {}, settings_models())


def test_a_file_that_is_no_toml_is_refused_with_the_place() -> None:
    message = refusal("[server]\nport = \n")
    assert "some.toml" in message
    assert "line 2" in message


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"x\.toml is not valid TOML"):
        load_settings(tmp_path / "x.toml", {}, {}, settings_models())


secret_keys = st.sampled_from(
    ["aws_access_key_id", "AWS_SECRET_ACCESS_KEY", "session_token", "password", "azure_storage_sas_token",
     "account_key", "google_service_account", "credential", "client_secret", "headers.authorization_token"]
)  # fmt: skip
secrets = st.text(string.ascii_letters + string.digits, min_size=12)


@given(secret_keys, secrets, secrets)
def test_no_secret_is_shown(key: str, token: str, option: str) -> None:
    warehouse = f'[warehouses.main]\nroot = "s3://user:{option}@host/p"\nstorage.{key} = "{option}"'
    settings = load(f'[server]\ntoken = "{token}"\n{warehouse}')
    assert settings.server.token
    assert settings.server.token.get_secret_value() == token
    assert settings.warehouses["main"].storage[key] == option
    shown = json.dumps(settings.rows())
    assert token not in shown
    assert option not in shown
    assert token not in repr(settings)
    assert option not in repr(settings)
    assert "********" in shown


@given(st.text(st.characters(codec="utf-8", min_codepoint=0x80, exclude_categories=["C", "Z"]), min_size=12))
def test_no_secret_is_in_an_error(token: str) -> None:
    assert token not in refusal(f'[server]\ntoken = "{token}"\n')
    assert token not in refusal(SERVER__TOKEN=token)


@pytest.mark.parametrize("text", ["0s", "90m", "7d", "never", "3600", "1.5h", "250ms"])
def test_how_long_purged_files_stay(text: str) -> None:
    assert row(load(WAREHOUSES__MAIN__PURGE_AFTER=text), "warehouses.main.purge_after")[0] == text


@pytest.mark.parametrize("text", ["soon", "-1s", "7 weeks", "", "1e3", "true"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    message = refusal(WAREHOUSES__MAIN__PURGE_AFTER=text)
    assert "warehouses.main.purge_after" in message
    assert "such as 90m or 2d" in message


def test_a_number_of_seconds_is_a_duration() -> None:
    assert load(ROOT + "purge_after = 60\n").warehouses["main"].purge_after == "60"
    assert "purge_after" in refusal(ROOT + "purge_after = true\n")


def test_lists_come_from_the_file_and_with_commas_from_the_environment() -> None:
    in_file = load(ROOT + 'allowed_locations = ["s3://a/b", "/c"]\n').warehouses["main"]
    in_environment = load(WAREHOUSES__MAIN__ALLOWED_LOCATIONS="s3://a/b, /c").warehouses["main"]
    assert in_file.allowed_locations == in_environment.allowed_locations == ("s3://a/b", "/c")
    assert "allowed_locations" in refusal(ROOT + "allowed_locations = 7\n")
