"""Programs in Go, built where this machine has it. They stay in our cache."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from contract_tests.worlds.java import CACHE, CannotRun


def go_program(package: str, version: str) -> str:
    """The path of the program, from the cache or built, which takes a minute or two. CannotRun without Go."""
    module = re.sub(r"/v\d+$", "", package)  # a major version is no part of the program's name
    target = CACHE / "bin" / version / module.rpartition("/")[2]
    if target.exists():
        return str(target)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise CannotRun(f"neither {target.name} nor Go to build it (go install {package}@{version})")
    return _built([go, "install", f"{package}@{version}"], target)


def _built(build: list[str], target: Path) -> str:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        run = subprocess.run(build, env={**os.environ, "GOBIN": work}, capture_output=True, text=True, check=False)
        if run.returncode:
            raise CannotRun(f"{' '.join(build)} failed: {run.stderr.strip()[-200:]}")
        (Path(work) / target.name).replace(target)  # of several processes that build it each puts a whole one
    return str(target)
