"""Classes are put together, not inherited: in these rooms a class inherits from a class of the project only if
both are models of request bodies."""

import ast
from pathlib import Path

import pytest

import irc_bridge

PACKAGE = Path(irc_bridge.__file__).parent
ROOMS = ("http", "iceberg_rest", "lance_rest", "server")
"""The rooms where this is so already."""
FILES = sorted(PACKAGE.rglob("*.py"))


def classes(file: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]


def names_of_bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].split(".")[-1] for base in node.bases}


OF_THE_PROJECT = {node.name for file in FILES for node in classes(file)}


@pytest.mark.parametrize("room", ROOMS)
def test_no_class_inherits_from_another(room: str) -> None:
    inherited = [
        f"{file.relative_to(PACKAGE)}: {node.name}"
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] == room and file.name != "requests.py"
        for node in classes(file)
        if names_of_bases(node) & OF_THE_PROJECT
    ]
    assert inherited == []
