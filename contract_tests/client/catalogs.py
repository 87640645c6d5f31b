"""The catalogs that the namespace class is held against, and what a stranger (pyiceberg) sees in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import lance_namespace as ln
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from contract_tests.worlds.s3 import KEY, S3, SECRET
from irc_bridge.client import IcebergRestNamespace

BRIDGE, BRIDGE_S3, PLAIN, PLAIN_S3 = "bridge", "bridge-s3", "plain", "plain-s3"
ON_DISK = pytest.mark.parametrize("catalog", [BRIDGE, PLAIN], indirect=True)
"""For what does not depend on the storage."""
ONLY_PLAIN = pytest.mark.parametrize("catalog", [PLAIN], indirect=True)
IMPLEMENTATION = "irc_bridge.client.IcebergRestNamespace"


@dataclass(frozen=True)
class Catalog:
    name: str
    url: str
    knows_lance: bool
    properties: Mapping[str, str] = field(default_factory=dict)

    def connect(self, **more: str) -> IcebergRestNamespace:
        properties = {"uri": self.url, "managed_by": "impl", **self.properties, **more}
        connected = ln.connect(IMPLEMENTATION, properties)
        assert isinstance(connected, IcebergRestNamespace)
        return connected

    def metadata(self, table: list[str]) -> Any:
        given = {key: each for key, each in self.properties.items() if key == "warehouse"}
        with RestCatalog("stranger", uri=self.url, **given) as catalog:
            return catalog.load_table(tuple(table)).metadata

    def version(self, table: list[str]) -> int | None:
        """What pyiceberg takes for the current one."""
        version: int | None = self.metadata(table).current_snapshot_id
        return version


def s3_settings(s3: S3) -> dict[str, str]:
    """For the reference server, which gives them on to whoever asks for vended credentials."""
    return {
        "io-impl": "org.apache.iceberg.io.ResolvingFileIO",
        "s3.endpoint": s3.endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": KEY,
        "s3.secret-access-key": SECRET,
        "client.region": "us-east-1",
        "include-credentials": "true",
        "jdbc.strict-mode": "true",  # else tables lie in namespaces that do not exist
    }


def rows(*ids: int) -> pa.Table:
    return pa.table([pa.array(ids, pa.int64()), pa.array([f"name {i}" for i in ids])], names=["id", "name"])
