"""This package, for executors that have pylance and pyarrow only."""

import zipfile
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import irc_bridge

_PACKAGE = Path(irc_bridge.__file__).parent
_SAME_TIME = (1980, 1, 1, 0, 0, 0)


def ship(session: Any) -> None:
    """Local executors have it. Others get it once, in a file that lives as long as Spark does."""
    context = session.sparkContext
    if context.master.startswith("local"):
        return
    from pyspark import SparkFiles

    content = _zipped()
    folder = Path(SparkFiles.getRootDirectory()) / "irc-bridge"
    file = folder / f"irc_bridge-{sha256(content).hexdigest()[:16]}.zip"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        file.write_bytes(content)
        context.addPyFile(str(file))


def _zipped() -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*.py")):
            entry = zipfile.ZipInfo(str(file.relative_to(_PACKAGE.parent)), _SAME_TIME)
            archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()
