"""`make bench`: prints ratios against peers that are measured in the same run. Fails when a target is missed."""

import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from contract_tests.load import commits, folders, freshness, mirrors, namespace, peers, speed, upstream, versions
from contract_tests.load.generator import WRK
from contract_tests.load.report import Line, table

PACKAGES = ["pylance", "pyarrow", "pyiceberg", "starlette", "uvicorn"]


def measured(root: Path) -> Iterator[Line]:
    with peers.bridge(root / "tables") as server:
        yield from speed.load_table(server.url, root)
        yield from speed.refs(server.url, root)
        yield from freshness.manifests_opened(server, root)
        yield from freshness.freshness(server.url, root)
    yield from upstream.upstream(root)
    yield from speed.pages(root)
    yield from speed.memory(root)
    yield from namespace.namespace(root)
    yield from versions.create_table_version(root)
    yield from commits.commits(root)
    yield from mirrors.mirrors(root)


def main() -> int:
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load by {'wrk' if WRK else 'asyncio'}")
    print(", ".join(f"{name} {version(name)}" for name in PACKAGES), flush=True)
    lines = []
    with tempfile.TemporaryDirectory(prefix="irc-bridge-bench-") as folder:
        folders.build(Path(folder))
        for line in measured(Path(folder)):
            print(f"  {line.what}: {line.figure} {line.ratio}", flush=True)
            lines.append(line)
    print(f"\n{table(lines)}")
    return int(any(line.ok is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
