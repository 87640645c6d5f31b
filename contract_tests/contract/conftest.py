import pytest

from contract_tests.conftest import params_of
from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import World

ROOT = ("default",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not in_a_place_that_is_not_there(item)]


def in_a_place_that_is_not_there(item: pytest.Item) -> bool:
    params = params_of(item)
    ability = {"child": "child namespaces", "root": "root tables"}.get(params.get("place", ""))
    return ability is not None and ability in params["world"].cannot


@pytest.fixture(params=["root", "child"])
def place(request: pytest.FixtureRequest, world: World, client: Client, name: str) -> tuple[str, ...]:
    """Where tables may live: in the root of the folder, and in a namespace of this test alone."""
    if request.param == "root":
        return ROOT
    return client.create_namespace(f"ns_{name}")
