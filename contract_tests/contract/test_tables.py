from typing import Any

import pytest

from contract_tests.contract.reports import SCAN_REPORT
from contract_tests.contract.tables import PURGE, ROOT, Place, absent, create
from contract_tests.worlds.bridge import (
    DUMMY_SCHEMA,
    SCHEMA,
    Client,
    as_loaded,
    assert_error,
    assert_ok,
    namespace_path,
    table_path,
)
from contract_tests.worlds.roots import Root
from contract_tests.worlds.world import Bridge
from contract_tests.worlds.writer import rows

IDENTITY = {"source-id": 1, "transform": "identity"}


OWN_IDS: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "identifier-field-ids": [],
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {
            "id": 2,
            "name": "place",
            "type": {
                "type": "struct",
                "fields": [
                    {"id": 5, "name": "x", "type": "double", "required": False},
                    {"id": 6, "name": "y", "type": "double", "required": False},
                ],
            },
            "required": False,
        },
        {
            "id": 3,
            "name": "marks",
            "type": {
                "type": "map",
                "key-id": 7,
                "key": "string",
                "value-id": 8,
                "value": "int",
                "value-required": False,
            },
            "required": False,
        },
        {
            "id": 4,
            "name": "words",
            "type": {"type": "list", "element-id": 9, "element": "string", "element-required": False},
            "required": False,
        },
    ],
}
"""Ids as Java and pyiceberg give them: those of columns first, then those of what lies in them."""


def without_doc(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "fields": [{key: field[key] for key in field if key != "doc"} for field in schema["fields"]]}


class TestCreate:
    def test_it_is_there_at_once(self, client: Client, place: Place, name: str) -> None:
        created = client.create_table(place, name)
        assert client.tables(place).count(name) == 1
        head = client.head(table_path(place, name))
        assert (head.status_code, head.content) == (204, b"")
        assert client.metadata(place, name) == as_loaded(created["metadata"])

    @pytest.mark.parametrize("stage", [True, False], ids=["staged", "at once"])
    def test_the_answer_has_the_clients_own_ids(
        self, client: Client, place: Place, name: str, stage: bool
    ) -> None:
        body = {"name": name, "schema": OWN_IDS, "stage-create": stage}
        answer = assert_ok(client.post(f"{namespace_path(place)}/tables", json=body))
        metadata = answer["metadata"]
        assert metadata["current-schema-id"] == OWN_IDS["schema-id"]
        assert [without_doc(schema) for schema in metadata["schemas"]] == [OWN_IDS]
        assert metadata["last-column-id"] >= 9
        assert ("metadata-location" in answer) == (not stage)
        if not stage:
            loaded = client.metadata(place, name)
            assert [without_doc(schema) for schema in loaded["schemas"]] == [{**OWN_IDS, "schema-id": 1}]
            assert loaded["last-column-id"] == metadata["last-column-id"]

    def test_ids_that_cannot_be_kept_are_given_anew(self, client: Client, place: Place, name: str) -> None:
        columns: Any = SCHEMA["fields"]
        twice = {**SCHEMA, "fields": [{**column, "id": 7} for column in columns]}
        metadata = client.create_table(place, name, schema=twice)["metadata"]
        assert [field["id"] for field in metadata["schemas"][0]["fields"]] == [1, 2]
        assert as_loaded(metadata) == client.metadata(place, name)

    def test_it_is_a_real_empty_lance_table(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        table = root.open(location)
        assert (table.version, table.count_rows()) == (1, 0)
        assert [(field.name, str(field.type), field.nullable) for field in table.schema] == [
            ("id", "int64", False),
            ("name", "string", True),
        ]
        root.write(location, rows(2).cast(table.schema), mode="append")
        assert client.metadata(place, name)["current-snapshot-id"] == 2

    def test_the_schema_comes_back(self, client: Client, place: Place, name: str) -> None:
        types: list[Any] = [
            "boolean", "int", "long", "float", "double", "decimal(9, 2)", "decimal(38, 10)", "date", "time",
            "timestamp", "timestamptz", "string", "binary", "fixed[5]",
            {"type": "list", "element-id": 101, "element": "string", "element-required": False},
            {"type": "struct", "fields": [{"id": 102, "name": "x", "type": "double", "required": False}]},
        ]  # fmt: skip
        fields = [{"id": i + 1, "name": f"c{i}", "type": each, "required": False} for i, each in enumerate(types)]
        created = client.create_table(place, name, schema={"type": "struct", "fields": fields})
        (schema,) = created["metadata"]["schemas"]
        assert [without_ids(field["type"]) for field in schema["fields"]] == [without_ids(each) for each in types]
        assert [field["name"] for field in schema["fields"]] == [field["name"] for field in fields]

    @pytest.mark.needs("Lance properties")
    def test_properties_are_kept(self, client: Client, root: Root, place: Place, name: str) -> None:
        properties = {"owner": "me", "комментарий": "да", "empty": ""}
        metadata = client.create_table(place, name, properties=properties)["metadata"]
        assert metadata["properties"].items() >= properties.items()
        assert root.open(metadata["location"]).metadata.items() >= properties.items()
        assert client.metadata(place, name)["properties"].items() >= properties.items()

    def test_managed_by_is_storage_unless_the_table_says_impl(
        self, client: Client, place: Place, name: str
    ) -> None:
        plain = client.create_table(place, name)["metadata"]["properties"]
        assert (plain["table_type"], plain["managed_by"]) == ("lance", "storage")
        client.create_table(place, f"{name}_impl", properties={"managed_by": "impl"})
        assert client.metadata(place, f"{name}_impl")["properties"]["managed_by"] == "impl"

    def test_create_twice(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name, properties={"owner": "first"})["metadata"]["location"]
        again = create(client, place, {"name": name, "schema": SCHEMA, "properties": {"owner": "second"}})
        assert_error(again, 409, "AlreadyExistsException", names="Table already exists")
        assert client.metadata(place, name)["properties"]["owner"] == "first"
        assert root.open(location).version == 1

    def test_names_are_case_sensitive(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        assert client.head(table_path(place, name.upper())).status_code == 404
        client.create_table(place, name.upper())
        assert {name, name.upper()} <= set(client.tables(place))

    def test_an_unpartitioned_spec_and_no_order_are_fine(self, client: Client, place: Place, name: str) -> None:
        spec, order = {"spec-id": 0, "fields": []}, {"order-id": 0, "fields": []}
        client.create_table(place, name, **{"partition-spec": spec, "write-order": order})
        assert client.metadata(place, name)["default-spec-id"] == 0

    def test_a_partition_spec_is_refused(self, client: Client, place: Place, name: str) -> None:
        spec = {"spec-id": 0, "fields": [{**IDENTITY, "field-id": 1000, "name": "id"}]}
        body = {"name": name, "schema": SCHEMA, "partition-spec": spec}
        message = assert_error(create(client, place, body), 400, "BadRequestException")
        assert "partition" in message and len(message.split()) > 3
        assert absent(client, place, name)

    def test_a_sort_order_is_refused(self, client: Client, place: Place, name: str) -> None:
        order = {"order-id": 1, "fields": [{**IDENTITY, "direction": "asc", "null-order": "nulls-first"}]}
        body = {"name": name, "schema": SCHEMA, "write-order": order}
        message = assert_error(create(client, place, body), 400, "BadRequestException")
        assert ("sort" in message or "order" in message) and len(message.split()) > 3
        assert absent(client, place, name)

    @pytest.mark.parametrize(
        ("field", "said"),
        [
            ({"id": 2, "name": "id", "type": "string", "required": False}, "id"),
            ({"id": 2, "name": "odd", "type": "no-such-type", "required": False}, "no-such-type"),
            ({"id": 2, "name": "odd", "type": "decimal(39, 2)", "required": False}, "39"),
            ({"id": 2, "name": "odd", "type": "timestamp_ns", "required": False}, "timestamp_ns"),
            ({"id": 2, "name": "odd", "type": {"type": "list"}, "required": False}, "element"),
        ],
    )
    def test_a_schema_that_cannot_be(
        self, client: Client, place: Place, name: str, field: dict[str, Any], said: str
    ) -> None:
        schema = {"type": "struct", "fields": [SCHEMA["fields"][0], field]}  # type: ignore[index]
        assert_error(create(client, place, {"name": name, "schema": schema}), 400, names=said)
        assert absent(client, place, name)

    def test_in_a_namespace_that_is_not_there(self, client: Client, name: str) -> None:
        response = create(client, (name,), {"name": "t", "schema": SCHEMA})
        assert_error(response, 404, "NoSuchNamespaceException", names=name)


def without_ids(node: Any) -> Any:
    if isinstance(node, list):
        return [without_ids(each) for each in node]
    if isinstance(node, dict):
        return {key: without_ids(value) for key, value in node.items() if key not in ("id", "element-id")}
    return node.replace(" ", "") if isinstance(node, str) else node


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("HEAD", ""), ("DELETE", "")])
def test_a_table_that_is_not_there(client: Client, place: Place, name: str, method: str, path: str) -> None:
    response = client.request(method, table_path(place, name) + path)
    assert response.status_code == 404
    if method == "HEAD":
        assert response.content == b""
    else:
        assert_error(response, 404, "NoSuchTableException", names="Table does not exist")


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_a_table_in_no_namespace(client: Client, name: str, method: str) -> None:
    response = client.request(method, table_path((name,), "t"))
    assert response.status_code == 404
    if method != "HEAD":
        # not NoSuchNamespaceException: Java clients would no longer look for t's metadata table `name`
        assert_error(response, 404, "NoSuchTableException", names="does not exist")


class TestDrop:
    def test_without_purge_the_data_stays(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        root.write(location, rows(3).cast(root.open(location).schema), mode="append")
        assert client.delete(table_path(place, name)).status_code == 204
        assert absent(client, place, name)
        assert root.open(location).count_rows() == 3

    @pytest.mark.parametrize("query", [{}, {"purgeRequested": "false"}])
    def test_a_hidden_table_is_never_overwritten(
        self, client: Client, root: Root, place: Place, name: str, query: dict[str, str]
    ) -> None:
        location = client.create_table(place, name)["metadata"]["location"]
        root.write(location, rows(3).cast(root.open(location).schema), mode="append")
        client.delete(table_path(place, name), params=query)
        again = create(client, place, {"name": name, "schema": SCHEMA})
        assert again.status_code in (200, 400, 409)
        assert root.open(location).count_rows() == 3
        if again.status_code == 200:
            assert again.json()["metadata"]["location"] != location
            assert client.metadata(place, name)["current-snapshot-id"] == 1
        else:
            assert absent(client, place, name)

    def test_with_purge_the_files_go(self, bridge: Bridge, place: Place, name: str) -> None:
        client = bridge.client
        location = client.create_table(place, name)["metadata"]["location"]
        assert client.delete(table_path(place, name), params=PURGE).status_code == 204
        assert absent(client, place, name)
        assert not bridge.root.exists(location)

    def test_after_a_purge_the_name_is_free(self, client: Client, place: Place, name: str) -> None:
        first = client.create_table(place, name)["metadata"]
        client.delete(table_path(place, name), params=PURGE)
        second = client.create_table(place, name)["metadata"]
        assert second["table-uuid"] != first["table-uuid"]
        assert client.metadata(place, name) == as_loaded(second)

    @pytest.mark.parametrize("query", [{}, PURGE])
    def test_drop_twice(self, client: Client, place: Place, name: str, query: dict[str, str]) -> None:
        client.create_table(place, name)
        assert client.delete(table_path(place, name), params=query).status_code == 204
        assert_error(client.delete(table_path(place, name), params=query), 404, "NoSuchTableException")

    @pytest.mark.needs("answers of its own")
    def test_purge_is_a_yes_or_no(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        response = client.delete(table_path(place, name), params={"purgeRequested": "perhaps"})
        assert_error(response, 400, "BadRequestException", names="purgeRequested")
        assert client.head(table_path(place, name)).status_code == 204

    @pytest.mark.parametrize("query", [{}, PURGE])
    def test_a_declared_table(self, client: Client, place: Place, name: str, query: dict[str, str]) -> None:
        client.declare_table(place, name)
        assert client.delete(table_path(place, name), params=query).status_code == 204
        assert absent(client, place, name)

    @pytest.mark.needs("folders as tables")
    @pytest.mark.parametrize("query", [{}, PURGE])
    def test_a_folder_that_somebody_else_made(self, bridge: Bridge, name: str, query: dict[str, str]) -> None:
        client = bridge.client
        bridge.root.write(bridge.root.at(f"{name}.lance"))
        assert client.tables(ROOT).count(name) == 1
        assert client.delete(table_path(ROOT, name), params=query).status_code == 204
        assert absent(client, ROOT, name)
        assert bridge.root.exists(bridge.root.at(f"{name}.lance")) == (query != PURGE)


class TestDeclare:
    """What the published Lance client creates: one optional string column `dummy` stands for no schema."""

    def test_it_has_no_version_and_no_schema(self, client: Client, root: Root, place: Place, name: str) -> None:
        created = client.declare_table(place, name, properties={"owner": "me"})
        assert client.tables(place).count(name) == 1
        assert client.head(table_path(place, name)).status_code == 204
        for metadata in (created["metadata"], client.metadata(place, name)):
            assert metadata.get("current-snapshot-id", -1) == -1
            assert metadata.get("snapshots", []) == []
            assert metadata.get("snapshot-log", []) == []
            assert all(schema["fields"] == [] for schema in metadata["schemas"])
            assert metadata["properties"].items() >= {"owner": "me", "table_type": "lance"}.items()
        with pytest.raises(ValueError, match="not found"):
            root.open(created["metadata"]["location"])

    def test_declare_twice(self, client: Client, place: Place, name: str) -> None:
        client.declare_table(place, name)
        body = {"name": name, "schema": DUMMY_SCHEMA, "properties": {"table_type": "lance"}}
        assert_error(create(client, place, body), 409, "AlreadyExistsException")
        assert_error(create(client, place, {"name": name, "schema": SCHEMA}), 409, "AlreadyExistsException")

    def test_a_writer_makes_the_first_version(self, client: Client, root: Root, place: Place, name: str) -> None:
        location = client.declare_table(place, name)["metadata"]["location"]
        root.write(location)
        metadata = client.metadata(place, name)
        assert metadata["current-snapshot-id"] == 1
        assert metadata["location"] == location
        assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["id", "name"]
        assert client.tables(place).count(name) == 1

    @pytest.mark.needs("unmarked tables")
    def test_a_schema_of_one_dummy_without_the_mark_is_a_schema(
        self, client: Client, place: Place, name: str
    ) -> None:
        metadata = client.create_table(place, name, schema=DUMMY_SCHEMA)["metadata"]
        assert metadata["current-snapshot-id"] == 1
        assert [field["name"] for field in metadata["schemas"][0]["fields"]] == ["dummy"]


class TestMetrics:
    def test_a_report_is_accepted(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        response = client.post(f"{table_path(place, name)}/metrics", json=SCAN_REPORT)
        assert (response.status_code, response.content) == (204, b"")

    @pytest.mark.needs("answers of its own")
    def test_of_a_table_that_is_not_there(self, client: Client, place: Place, name: str) -> None:
        response = client.post(f"{table_path(place, name)}/metrics", json=SCAN_REPORT)
        assert_error(response, 404, "NoSuchTableException")

    @pytest.mark.needs("answers of its own")
    def test_a_report_of_no_kind(self, client: Client, place: Place, name: str) -> None:
        client.create_table(place, name)
        response = client.post(f"{table_path(place, name)}/metrics", json={"metrics": {}})
        assert_error(response, 400, "BadRequestException", names="report-type")


@pytest.mark.needs("answers of its own")
def test_credentials_of_a_warehouse_that_vends_none(client: Client, place: Place, name: str) -> None:
    client.create_table(place, name)
    answered = assert_ok(client.get(f"{table_path(place, name)}/credentials"))
    assert answered == {"storage-credentials": []}
    missing = client.get(f"{table_path(place, f'{name}_no')}/credentials")
    assert_error(missing, 404, "NoSuchTableException")
