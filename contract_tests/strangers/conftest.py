from collections.abc import Iterator, Mapping

import pytest

from contract_tests.strangers.ddl import Place, three_places
from contract_tests.strangers.housekeeping import Estate, Way, aged_estate
from contract_tests.worlds.java import CannotRun


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    try:
        with aged_estate(tmp_path_factory.mktemp("estate")) as estate:
            yield estate
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture
def way(estate: Estate, name: str) -> Way:
    """For a test that has names of ways as parameters."""
    return estate.way(name)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Place]]:
    try:
        with three_places(tmp_path_factory.mktemp("places")) as places:
            yield places
    except CannotRun as reason:
        pytest.skip(str(reason))
