from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from contract_tests.security.target import Target, running_target

StartTarget = Callable[..., Target]


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A bridge with the settings that it has by itself, for all tests that want no others."""
    with running_target(tmp_path_factory.mktemp("target")) as target:
        yield target


@pytest.fixture
def start_target(tmp_path: Path) -> Iterator[StartTarget]:
    """Starts bridges of this test alone. Takes settings for the section `[server]`, and arguments of `serve`."""
    with ExitStack() as stack:

        def start(settings: str = "", *arguments: str, prefix: tuple[str, ...] = ()) -> Target:
            folder = tmp_path / f"target{len(list(tmp_path.glob('target*')))}"
            folder.mkdir()
            return stack.enter_context(running_target(folder, settings, *arguments, prefix=prefix))

        yield start
