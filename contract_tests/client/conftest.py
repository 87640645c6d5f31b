from collections.abc import Iterator
from pathlib import Path

import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import BRIDGE, BRIDGE_S3, PLAIN, PLAIN_S3, Catalog, s3_settings
from contract_tests.worlds.bridge import Server
from contract_tests.worlds.java import CannotRun
from contract_tests.worlds.s3 import S3
from contract_tests.worlds.servers import reference_server

UNSAFE = 'allow_expire = true\npurge_after = "0s"\n'
"""The client deletes versions and tables over Iceberg REST, at once, as a Lance namespace does."""


@pytest.fixture(scope="session")
def bridge_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client-bridge")
    settings = f'[warehouses.main]\nbackend = "dir"\nroot = "{folder}/lake"\n{UNSAFE}'
    (folder / "irc-bridge.toml").write_text(settings)
    with Server("--port", "0", cwd=folder) as server:
        yield server.url
        assert "Traceback" not in server.text()


@pytest.fixture(scope="session")
def bridge_on_s3_url(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client-bridge-s3")
    storage = "".join(f'storage.{key} = "{value}"\n' for key, value in s3.options.items())
    root = f'backend = "dir"\nroot = "{s3.bucket("bridge")}/lake"\nvend_credentials = true\n{UNSAFE}'
    (folder / "irc-bridge.toml").write_text(f"[warehouses.main]\n{root}{storage}")
    with Server("--port", "0", cwd=folder) as server:
        yield server.url
        assert "Traceback" not in server.text()


@pytest.fixture(scope="session")
def plain_url(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Iterator[str]:
    """A server that never heard of Lance. One Java process for local and S3 tables."""
    try:
        with reference_server(tmp_path_factory.mktemp("client-plain"), s3_settings(s3)) as url:
            yield url
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=[BRIDGE, BRIDGE_S3, PLAIN, PLAIN_S3])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    name = request.param
    if name == BRIDGE:
        return Catalog(name, request.getfixturevalue("bridge_url"), True, {"warehouse": "main"})
    if name == BRIDGE_S3:
        return Catalog(name, request.getfixturevalue("bridge_on_s3_url"), True)
    url = request.getfixturevalue("plain_url")
    if name == PLAIN:
        return Catalog(name, url, False, {"root": f"{tmp_path}/lake"})
    s3 = request.getfixturevalue("s3")
    # that server vends keys and nothing else
    place = {"aws_endpoint": s3.endpoint, "aws_region": "us-east-1", "allow_http": "true"}
    storage = {f"storage.{key}": value for key, value in place.items()}
    return Catalog(name, url, False, {"root": f"{s3.bucket('plain')}/lake", **storage})


@pytest.fixture
def plain(plain_url: str, tmp_path: Path) -> Catalog:
    return Catalog(PLAIN, plain_url, False, {"root": f"{tmp_path}/lake"})


@pytest.fixture
def table(catalog: Catalog, name: str) -> list[str]:
    """Its namespace is there, it is not."""
    catalog.connect().create_namespace(ln.CreateNamespaceRequest(id=[f"ns_{name}"]))
    return [f"ns_{name}", "t"]
