"""What a purge of a Lance table of an `irc` warehouse removes."""

from pathlib import Path

import requests

from contract_tests.security.upstream.canary import Canary
from contract_tests.security.upstream.client import LANCE, Client, set_properties
from contract_tests.worlds.bridge import SCHEMA
from contract_tests.worlds.world import UpstreamWorld


class TestPurge:
    """Of what lies in the folder of a Lance table, or below it, only the table's own files go."""

    def test_an_iceberg_table_that_got_the_name_and_the_folder_stays(
        self, client: Client, upstream: UpstreamWorld
    ) -> None:
        assert client.create("orders", properties=LANCE).status_code == 200
        renamed = {
            "source": {"namespace": [client.namespace], "name": "orders"},
            "destination": {"namespace": [client.namespace], "name": "old"},
        }
        assert client.post("/tables/rename", renamed).ok
        other = client.create("orders").json()["metadata"]
        place = Path(client.load("old").json()["metadata"]["location"].removeprefix("file://"))
        assert Path(other["location"].removeprefix("file:")) == place, "the server gives the folder twice"
        (place / "data").mkdir(exist_ok=True)
        (place / "data" / "1.parquet").write_bytes(b"rows")
        (place / "metadata" / "snap-1.avro").write_bytes(b"manifests")
        assert client.purge("old").status_code == 204
        assert client.load("orders").status_code == 200
        assert client.commit("orders", set_properties(a="b")).status_code == 200
        left = {str(each.relative_to(place)) for each in place.rglob("*") if each.is_file()}
        assert {"data/1.parquet", "metadata/snap-1.avro"} <= left
        assert all(each.startswith(("data/1.", "metadata/")) for each in left)

    def test_a_table_of_the_namespace_of_its_name_stays(self, client: Client) -> None:
        assert client.create("a", properties=LANCE).status_code == 200
        body = {"namespace": [client.namespace, "a"]}
        assert client.post("/namespaces", body).status_code == 200
        inner = Client(client.url, f"{client.namespace}%1Fa")
        for name in ("lance", "ice"):
            assert inner.create(name, properties=LANCE if name == "lance" else {}).status_code == 200
        place = Path(client.load("a").json()["metadata"]["location"].removeprefix("file://"))
        assert (place / "lance" / "_versions").is_dir(), "the server puts it below the table"
        assert client.purge("a").status_code == 204
        assert not (place / "_versions").exists()
        assert inner.load("lance").json()["metadata"]["current-snapshot-id"] == 1
        assert inner.load("ice").status_code == 200

    def test_a_folder_without_a_lance_table_stays(
        self, client: Client, upstream: UpstreamWorld, outside: Canary
    ) -> None:
        """Whoever made the table at the server itself."""
        for number, place in enumerate((outside.folder / "plain", outside.folder)):
            name = f"t{number}"
            body = {"name": name, "schema": SCHEMA, "location": str(place), "properties": LANCE}
            url = f"{upstream.url}/v1/namespaces/{client.namespace}/tables"
            assert requests.post(url, json=body, timeout=60).status_code == 200
            assert client.purge(name).status_code == 204
        assert outside.is_unchanged()

    def test_inside_what_is_allowed_a_table_goes(self, confined: Client, below: Path) -> None:
        for place in (f"{below}/purged", f"file://{below}/deep/purged/"):
            assert confined.create("t", location=place, properties=LANCE).status_code == 200
            folder = Path(place.removeprefix("file://"))
            assert (folder / "_versions").is_dir()
            assert confined.purge("t").status_code == 204
            assert not folder.exists()
