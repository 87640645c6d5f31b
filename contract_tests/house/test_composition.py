"""The classes of the project are composed: none inherits from another one."""

import importlib
import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, is_typeddict

import pytest
from pydantic import BaseModel

import irc_bridge

PACKAGE = Path(irc_bridge.__file__).parent
LEFT = {
    "irc_bridge.iceberg_rest.calls.Call": "goes with the HTTP edge",
    "irc_bridge.lance_rest.calls.Call": "goes with the HTTP edge",
    "irc_bridge.pipeline.upserts._OfFragments": "Spark is given an object that it can call",
    "irc_bridge.pipeline.upserts._OfParts": "Spark is given an object that it can call",
}
"""Classes that still inherit, and why."""
MODULES = sorted(
    ".".join(("irc_bridge", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for file in PACKAGE.rglob("*.py")
    if file.name != "__main__.py"
)


def classes_of(module: str) -> Iterator[type[Any]]:
    for _, each in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        if each.__module__ == module:
            yield each


def may_inherit(kind: type[Any]) -> bool:
    return is_typeddict(kind) or issubclass(kind, (BaseException, BaseModel, Enum))


def is_protocol(kind: type[Any]) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


@pytest.mark.parametrize("module", MODULES)
def test_no_class_inherits_from_another(module: str) -> None:
    for kind in classes_of(module):
        above = [each for each in kind.__bases__ if each.__module__.startswith("irc_bridge.")]
        name = f"{module}.{kind.__qualname__}"
        inherits = [each.__name__ for each in above if not (may_inherit(each) or is_protocol(each))]
        assert not inherits or name in LEFT, f"{name} inherits from {inherits}"


def test_backends_are_opened_by_one_table() -> None:
    """Beside the commands, and a client that is a Lance namespace itself, nothing imports a backend."""
    users = {
        file.relative_to(PACKAGE).parts[0]
        for file in PACKAGE.rglob("*.py")
        if "irc_bridge.backends" in file.read_text()
    }
    assert users == {"backends", "client", "cli"}
