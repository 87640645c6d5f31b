import ast
from pathlib import Path

import pytest

import irc_bridge

LINES_IN_A_FILE = 400
LINES_IN_A_FUNCTION = 60
ROOT = Path(irc_bridge.__file__).parents[1]
FILES = sorted([*(ROOT / "irc_bridge").rglob("*.py"), *(ROOT / "contract_tests").rglob("*.py")])


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_are_small(file: Path) -> None:
    text = file.read_text()
    assert len(text.splitlines()) <= LINES_IN_A_FILE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= LINES_IN_A_FUNCTION, f"{node.name} has {length} lines"


def test_no_file_names_a_machine() -> None:
    """No path of the machine on which it was written, no unfinished business."""
    forbidden = ["/" + "work/", "/" + "root/", "TO" + "DO", "FIX" + "ME", "raise Not" + "ImplementedError"]
    for file in FILES:
        found = [word for word in forbidden if word in file.read_text()]
        assert not found, f"{file}: {found}"
