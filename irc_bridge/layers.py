"""Where settings come from: layers of values of which later ones win, and files that hold a secret each."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from irc_bridge.errors import InvalidInput
from irc_bridge.names import dotted

Key = tuple[str, ...]


class Value(NamedTuple):
    value: object
    source: str


Layer = dict[Key, Value]

_FILE = "_file"
"""The end of the name of a setting that names a file with the value of a secret."""
_SECRETS = ("token", "credential")
_TABLES_OF_SECRETS = ("storage", "headers")
_FILES_OF_STORAGES = re.compile(r"(aws_|azure_)?(web_identity|federated|container_authorization)_token_file", re.I)
"""Storage options whose own values are names of files. The storage client reads those files itself."""


def files_of_secrets(names: Iterable[str]) -> list[str]:
    """The names of the settings that name the files of the secrets among `names`."""
    return [f"{name}{_FILE}" for name in names if name in _SECRETS]


def merged(*layers: Layer) -> Layer:
    """The settings of all layers. A secret in a later layer replaces the file of that secret in an earlier one,
    and the other way round."""
    result: Layer = {}
    for layer in layers:
        files = {secret: key for key in layer if (secret := _secret_of(key))}
        for secret, file in files.items():
            if secret in layer:
                raise InvalidInput(
                    f"{dotted(secret)} ({layer[secret].source}) and {dotted(file)} ({layer[file].source}) exclude "
                    "each other: leave one of them out"
                )
        kept = {key: value for key, value in result.items() if key not in files and _secret_of(key) not in layer}
        result = kept | layer
    return result


def with_secrets_read(values: Layer) -> Layer:
    """The settings with each name of a file of a secret replaced by that secret."""
    read: Layer = {}
    for key, value in values.items():
        secret = _secret_of(key)
        if secret is None:
            read[key] = value
        else:
            read[secret] = Value(_read_secret(key, value), f"{value.value}, named by {value.source}")
    return read


def _secret_of(key: Key) -> Key | None:
    """The secret whose file this setting names; None for a setting that names no such file."""
    name = key[-1]
    if not name.lower().endswith(_FILE) or len(name) == len(_FILE):
        return None
    secret = (*key[:-1], name[: -len(_FILE)])
    match key:
        case ("server", _) | ("warehouses", _, _):
            return secret if secret[-1] in _SECRETS else None
        case ("warehouses", _, table, _) if table in _TABLES_OF_SECRETS:
            return None if _FILES_OF_STORAGES.fullmatch(name) else secret
    return None


def _read_secret(key: Key, value: Value) -> str:
    """The text of the file without white space around it: editors end a file with a line break."""
    try:
        text = Path(str(value.value)).read_text("utf-8").strip()
        reason = "it is empty"
    except OSError as error:
        text, reason = "", error.strerror or "it cannot be opened"
    except ValueError:  # bytes that are no UTF-8, or a name that no file can have
        text, reason = "", "it is no UTF-8 text"
    if not text:
        raise InvalidInput(
            f"{dotted(key)} ({value.source}): the file {value.value} cannot be used, {reason}: "
            "let the setting name a file that holds the secret and nothing else"
        )
    return text
