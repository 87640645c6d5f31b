"""The servers that tests need beside the bridge. Each is described once and runs as a local process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contract_tests.worlds.java import jar, java_home
from contract_tests.worlds.process import free_port, serving

REFERENCE_SERVER = "org.apache.iceberg:iceberg-open-api:1.9.0"


@contextmanager
def reference_server(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The Iceberg project's own REST server (Java) over `folder`; gives its URL. `settings` are properties of its
    catalog, such as `s3.endpoint`."""
    jars = [jar(f"{REFERENCE_SERVER}:test-fixtures"), jar(REFERENCE_SERVER)]
    port = free_port()
    env = {
        "CATALOG_WAREHOUSE": str(folder),
        "CATALOG_URI": f"jdbc:sqlite:file:{folder}/catalog.db",  # in memory it answers 500 under concurrency
        "CATALOG_REST_PORT": str(port),
    }
    for key, value in (settings or {}).items():
        env["CATALOG_" + key.replace("-", "__").replace(".", "_").upper()] = value
    class_path = ":".join(map(str, jars))
    command = [str(java_home() / "bin/java"), "-cp", class_path, "org.apache.iceberg.rest.RESTCatalogServer"]
    url = f"http://127.0.0.1:{port}"
    with serving(command, f"{url}/v1/config", env):
        yield url
