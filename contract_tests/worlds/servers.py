"""The servers that tests need beside the bridge. Each is described once and runs as a local process."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from contract_tests.worlds.java import jar, java_home
from contract_tests.worlds.process import free_port, serving
from contract_tests.worlds.s3 import KEY, S3, SECRET

REFERENCE_SERVER = "org.apache.iceberg:iceberg-open-api:1.9.0"
NESSIE = "org.projectnessie.nessie:nessie-quarkus:0.99.0:runner"


@contextmanager
def reference_server(
    folder: Path, settings: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[str]:
    """The Iceberg project's own REST server (Java) over `folder`, which keeps all it knows; gives its URL.
    `settings` are properties of its catalog, such as `s3.endpoint`."""
    jars = [jar(f"{REFERENCE_SERVER}:test-fixtures"), jar(REFERENCE_SERVER)]
    port = port or free_port()
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


@contextmanager
def nessie(s3: S3) -> Iterator[str]:
    """Nessie with a new warehouse in a bucket of `s3`, all else in memory; gives the URL of its catalog."""
    port = free_port()
    store = "nessie.catalog.service.s3.default-options"
    settings = {
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "wh",
        "nessie.catalog.warehouses.wh.location": f"{s3.bucket('nessie')}/wh",
        f"{store}.endpoint": s3.endpoint,
        f"{store}.path-style-access": "true",
        f"{store}.region": "us-east-1",
        f"{store}.access-key": "urn:nessie-secret:quarkus:s3",
        "s3.name": KEY,
        "s3.secret": SECRET,
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": str(port),
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
    }
    java = str(java_home(21, 30) / "bin/java")
    command = [
        java,
        "-Xmx512m",
        *(f"-D{key}={value}" for key, value in settings.items()),
        "-jar",
        str(jar(NESSIE)),
    ]
    url = f"http://127.0.0.1:{port}/iceberg"
    with serving(command, f"{url}/v1/config"):
        yield url
