from typing import Any

from hypothesis import HealthCheck, settings

from contract_tests.worlds.bridge import Client, assert_error, namespace_path, table_path

SEARCH = settings(
    deadline=None,  # a server on a busy machine answers when it answers
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
Place = tuple[str, ...]
ROOT = ("default",)
PURGE = {"purgeRequested": "true"}


def create(client: Client, place: Place, body: dict[str, Any]) -> Any:
    return client.post(f"{namespace_path(place)}/tables", json=body)


def absent(client: Client, place: Place, name: str) -> bool:
    load = client.get(table_path(place, name))
    assert_error(load, 404, "NoSuchTableException", names="Table does not exist")
    return client.head(table_path(place, name)).status_code == 404 and name not in client.tables(place)
