"""irc-bridge.toml < environment IRC_BRIDGE__SECTION__KEY < flags: one frozen model that knows its sources."""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_origin

from pydantic import (
    Field,
    SecretStr,
    SerializeAsAny,
    ValidationError,
    field_validator,
)

from irc_bridge.errors import InvalidInput
from irc_bridge.layers import Key as Key
from irc_bridge.layers import Layer as Layer
from irc_bridge.layers import Value as Value
from irc_bridge.layers import files_of_secrets, merged, with_secrets_read
from irc_bridge.masking import MASK, without_user_info
from irc_bridge.names import dotted
from irc_bridge.settings_fields import Integer, Seconds, Section, Texts, WarehouseSettings

FILE_NAME = "irc-bridge.toml"
ENVIRONMENT_PREFIX = "IRC_BRIDGE__"
DEFAULT_WAREHOUSE = "main"
DEFAULT_ROOT = "./warehouse"

_ROUTE_WORDS = frozenset({"namespaces", "tables", "views", "transactions", "config", "oauth"})
_SECRET = re.compile(
    r"key|secret|token|password|passphrase|sas|credential|signature|connection_string|service_account", re.I
)


TableT = TypeVar("TableT", bound=Section)


class ServerSettings(Section):
    host: str = Field(default="127.0.0.1", min_length=1)
    port: Integer = Field(default=8181, ge=0, le=65535)
    token: SecretStr | None = None
    max_body_bytes: Integer = Field(default=32 * 1024 * 1024, ge=1)
    max_create_body_bytes: Integer = Field(default=256 * 1024 * 1024, ge=1)
    max_connections: Integer = Field(default=10_000, ge=1)
    idle_timeout: Seconds = Field(default=75, gt=0)
    request_timeout: Seconds = Field(default=30, gt=0)
    workers: Integer = Field(default=1, ge=1)
    allowed_origins: Texts = ()
    trusted_proxies: Texts = ()

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise ValueError(
                    f"Input should be IP addresses and networks, such as 10.0.0.7 and 10.1.0.0/16: {proxy}"
                ) from None
        return proxies

    @field_validator("token")
    @classmethod
    def _fits_a_header(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
            raise ValueError("Input should be visible ASCII characters without spaces, at least one")
        return token

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\sA-Z/?#@*]+", origin):
                raise ValueError(
                    "Input should be origins as browsers send them, such as https://catalog.example:8443, "
                    f"in lower case and without a path: {origin}"
                )
        return origins


class Settings(Section):
    server: ServerSettings
    warehouses: dict[str, SerializeAsAny[WarehouseSettings]]
    sources: dict[Key, str] = Field(repr=False)
    """Where each value came from; what is not here is a default."""

    def rows(self) -> list[dict[str, Any]]:
        """Every value with its key and source, secrets masked."""
        tables: list[tuple[Key, Section]] = [(("server",), self.server)]
        tables += [(("warehouses", name), warehouse) for name, warehouse in self.warehouses.items()]
        return [row for prefix, table in tables for row in self._rows_of(prefix, table.model_dump())]

    def _rows_of(self, prefix: Key, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        rows = []
        for name, value in values.items():
            key = (*prefix, name)
            if isinstance(value, dict):
                rows += self._rows_of(key, value)
            else:
                source = self.sources.get(key, "default")
                rows.append({"key": dotted(key), "value": _masked(key, value), "source": source})
        return rows


def _masked(key: Key, value: object) -> object:
    tables = key[2:-1]
    if isinstance(value, SecretStr) or "headers" in tables or ("storage" in tables and _SECRET.search(key[-1])):
        return MASK
    return without_user_info(value) if isinstance(value, str) else value


Models = Mapping[str, type[WarehouseSettings]]
"""The settings of each kind of backend, by the name that `backend` has in irc-bridge.toml."""


def load_settings(
    config: Path | None, environ: Mapping[str, str], flags: Layer, models: Models, root: str | None = None
) -> Settings:
    """`config` names a file that must exist; without it irc-bridge.toml is read where there is one."""
    from_file = _read_file(config)
    if root is not None and any(key[0] == "warehouses" for key in from_file):
        raise InvalidInput(
            f"ROOT ({root}) was given and {config or FILE_NAME} has warehouses as well: "
            "leave out ROOT, or name a file without warehouses with --config"
        )
    values = merged(from_file, _read_environment(environ, from_file), flags)
    if root is not None:
        values[("warehouses", DEFAULT_WAREHOUSE, "root")] = Value(root, "ROOT")
    elif not any(key[0] == "warehouses" for key in values):
        values[("warehouses", DEFAULT_WAREHOUSE, "root")] = Value(DEFAULT_ROOT, "default")
    for key, value in values.items():
        _check_key(key, value, values, models)
    return _require_free_header(_build(with_secrets_read(values), models))


def _read_file(config: Path | None) -> Layer:
    path = config or Path(FILE_NAME)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        if config is None:
            return {}
        raise InvalidInput(f"The configuration file {path} does not exist") from None
    except OSError as error:
        raise InvalidInput(f"The configuration file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"The configuration file {path} is not valid TOML: {error}") from None
    return {_with_storage_key(key): Value(value, str(path)) for key, value in _flat((), content)}


def _flat(prefix: Key, table: Mapping[str, object]) -> list[tuple[Key, object]]:
    flat: list[tuple[Key, object]] = []
    for name, value in table.items():
        if isinstance(value, dict) and value:
            flat += _flat((*prefix, name), value)
        else:
            flat.append(((*prefix, name), value))
    return flat


def _with_storage_key(key: Key) -> Key:
    """ "storage.region" = ... and storage.region = ... mean the same; below storage a key may hold dots."""
    if len(key) > 2 and key[0] == "warehouses":
        first, dot, rest = key[2].partition(".")
        if first == "storage" and (dot or len(key) > 3):
            return (*key[:2], first, ".".join((*((rest,) if dot else ()), *key[3:])))
    return key


def _read_environment(environ: Mapping[str, str], from_file: Layer) -> Layer:
    spelled = {key[1].lower(): key[1] for key in from_file if key[0] == "warehouses" and len(key) > 1}
    layer: Layer = {}
    for variable in sorted(environ):
        if variable.startswith(ENVIRONMENT_PREFIX):
            key = tuple(variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
            if key[0] == "warehouses" and len(key) > 1:
                key = (key[0], spelled.get(key[1], key[1]), *key[2:])
            layer[_with_storage_key(key)] = Value(environ[variable], f"environment {variable}")
    return layer


def _model_of(warehouse: str, values: Layer, models: Models) -> type[WarehouseSettings]:
    key = ("warehouses", warehouse, "backend")
    backend, source = values.get(key, Value("dir", "default"))
    if not isinstance(backend, str) or backend not in models:
        raise InvalidInput(
            f"{dotted(key)} = {backend!r} ({source}): there is no such backend, nearest is "
            f"{_nearest(str(backend), list(models))!r}"
        )
    return models[backend]


def _known_keys(key: Key, values: Layer, models: Models) -> tuple[list[Key], list[Key]]:
    """The settings and the tables of settings that may stand where this key stands."""
    if key[0] != "warehouses" or len(key) == 1:
        names = [*ServerSettings.model_fields, *files_of_secrets(ServerSettings.model_fields)]
        return [("server", name) for name in names], [("server",), ("warehouses",)]
    fields = _model_of(key[1], values, models).model_fields
    tables = [name for name, field in fields.items() if get_origin(field.annotation) is dict]
    return (
        [(*key[:2], name) for name in (*fields, *files_of_secrets(fields)) if name not in tables],
        [key[:2], *((*key[:2], name) for name in tables)],
    )


def _check_key(key: Key, value: Value, values: Layer, models: Models) -> None:
    """Refuses a key that nothing reads, and a plain value where a table belongs."""
    if key[0] == "warehouses" and len(key) > 1:
        _check_warehouse_name(key[1], value.source)
    settings, tables = _known_keys(key, values, models)
    in_open_table = len(key) == 4 and key[:3] in tables
    if key in tables:
        if value.value != {}:
            raise InvalidInput(f"{dotted(key)} ({value.source}) is a table of settings, not a value")
    elif key not in settings and not in_open_table:
        nearest = _nearest(dotted(key), [dotted(known) for known in settings + tables])
        raise InvalidInput(f"Unknown setting {dotted(key)} ({value.source}): did you mean {nearest}?")


def _check_warehouse_name(name: str, source: str) -> None:
    if name in _ROUTE_WORDS:
        raise InvalidInput(f"A warehouse cannot be named {name!r} ({source}): the protocol's routes use that word")
    if name in {".", ".."} or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise InvalidInput(
            f"A warehouse cannot be named {name!r} ({source}): the name stands in URLs, "
            "use letters, digits, '.', '_' and '-'"
        )


def _nearest(word: str, known: list[str]) -> str:
    return difflib.get_close_matches(word, known, n=1, cutoff=0)[0]


def _build(values: Layer, models: Models) -> Settings:
    names = sorted({key[1] for key in values if key[0] == "warehouses" and len(key) > 1})
    return Settings(
        server=_table(ServerSettings, ("server",), values),
        warehouses={name: _table(_model_of(name, values, models), ("warehouses", name), values) for name in names},
        sources={key: value.source for key, value in values.items()},
    )


def _require_free_header(settings: Settings) -> Settings:
    for name, warehouse in settings.warehouses.items():
        if settings.server.token is not None and warehouse.passes_authorization:
            raise InvalidInput(
                f"server.token and warehouses.{name}.auth = 'passthrough' exclude each other: the one "
                f"Authorization header of a client is either for this server or for the one behind it"
            )
    return settings


def _table(model: type[TableT], prefix: Key, values: Layer) -> TableT:
    given: dict[str, Any] = {}
    for key, value in values.items():
        if key[: len(prefix)] == prefix and key != prefix:
            *tables, name = key[len(prefix) :]
            table = given
            for each in tables:
                table = table.setdefault(each, {})
            table[name] = value.value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise _explained(error, prefix, values) from None


def _explained(error: ValidationError, prefix: Key, values: Layer) -> InvalidInput:
    problem = error.errors(include_url=False, include_input=False)[0]
    key = (*prefix, *(str(part) for part in problem["loc"]))
    if problem["type"] == "missing":
        variable = ENVIRONMENT_PREFIX + "__".join(key).upper()
        return InvalidInput(
            f"{dotted(key)} is required: set it in {FILE_NAME} or in the environment as {variable}"
        )
    source = values[key].source if key in values else "default"
    return InvalidInput(f"{dotted(key)} ({source}): {problem['msg'].removeprefix('Value error, ')}")
