import pytest

from contract_tests.worlds.bridge import Client
from contract_tests.worlds.world import World

ROOT = ("default",)


@pytest.fixture(params=["root", pytest.param("child", marks=pytest.mark.needs("child namespaces"))])
def place(request: pytest.FixtureRequest, world: World, client: Client, name: str) -> tuple[str, ...]:
    """Where tables may live: in the root of the folder, and in a namespace of this test alone."""
    if request.param == "root":
        return ROOT
    return client.create_namespace(f"ns_{name}")
