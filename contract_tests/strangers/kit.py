"""The REST Compatibility Kit: the Iceberg project's own tests of a catalog, run by JUnit in a JVM of their own."""

import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from contract_tests.worlds.java import jar, java_home
from contract_tests.worlds.process import Guard
from contract_tests.worlds.servers import REFERENCE_SERVER

ICEBERG = "org.apache.iceberg:iceberg"
LIBRARIES = [
    "org.assertj:assertj-core:3.27.3",
    "net.bytebuddy:byte-buddy:1.15.11",
    "org.awaitility:awaitility:4.2.2",
    "org.mockito:mockito-core:4.11.0",
    "org.hamcrest:hamcrest:2.2",
]
NOT_BUNDLED = ["core", "api", "common", "bundled-guava", "data", "parquet"]
"""What the kit needs of Iceberg. Only up to 1.9 the reference server's jar holds it, with all libraries."""
SUITES = ["RESTCompatibilityKitCatalogTests", "RESTCompatibilityKitViewCatalogTests"]
FLAGS = {
    "rck.local": "false",
    "rck.requires-namespace-create": "true",
    "rck.supports-serverside-retry": "true",
    "rck.purge-test-namespaces": "true",
}
SECONDS = 120

Test = tuple[str, str]
"""A suite and a name in it."""


class Outcome(NamedTuple):
    kind: str
    """`passed`, `failed` or `skipped`, which JUnit says of a test that finds that it does not apply."""
    why: str = ""


def jars(version: str) -> list[str]:
    """Their class path, in which the first of two jars with the same class wins."""
    kit = [f"{ICEBERG}-open-api:{version}:tests", f"{ICEBERG}-open-api:{version}:test-fixtures"]
    kit += [f"{ICEBERG}-core:{version}:tests", f"{ICEBERG}-api:{version}:tests"]
    if version != "1.9.0":
        kit += [f"{ICEBERG}-{name}:{version}" for name in NOT_BUNDLED]
    return ["org.junit.platform:junit-platform-console-standalone:1.11.4", *kit, REFERENCE_SERVER, *LIBRARIES]


def run_kit(
    url: str, warehouse: str, folder: Path, version: str = "1.9.0", flags: Mapping[str, str] | None = None
) -> dict[Test, Outcome]:
    """All of it against the server at `url`, which should be a new one; `folder` is for the kit's reports."""
    settings = {**FLAGS, **(flags or {}), "uri": url, "warehouse": warehouse}
    class_path = ":".join(str(jar(each)) for each in jars(version))
    command = [str(java_home() / "bin/java"), "-Xmx1g", *(f"-D{key}={value}" for key, value in settings.items())]
    command += ["-cp", class_path, "org.junit.platform.console.ConsoleLauncher", "execute"]
    command += ["--disable-banner", "--details=summary", f"--reports-dir={folder}"]
    command += [f"--select-class=org.apache.iceberg.rest.{suite}" for suite in SUITES]
    said = _run(command, folder)
    outcomes = {test: outcome for report in folder.glob("TEST-*.xml") for test, outcome in _outcomes(report)}
    assert outcomes, f"the kit reports no test; it said:\n{said}"
    return outcomes


def _run(command: list[str], folder: Path) -> str:
    """The launcher ends with 1 when a test failed: what counts is its report."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        guard = Guard(process)
        try:
            process.wait(SECONDS)
        finally:
            process.kill()
            process.wait()
            guard.release()
        log.seek(0)
        return log.read().decode(errors="replace")[-4000:]


def _outcomes(report: Path) -> list[tuple[Test, Outcome]]:
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return [((case.attrib["classname"].rpartition(".")[2], case.attrib["name"]), _outcome(case)) for case in cases]


def _outcome(case: ElementTree.Element) -> Outcome:
    kinds = {"skipped": "skipped", "failure": "failed", "error": "failed"}
    for found in case:
        if found.tag in kinds:
            return Outcome(kinds[found.tag], (found.get("message") or found.text or "").strip()[:500])
    return Outcome("passed")
