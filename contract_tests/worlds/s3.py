"""An S3 server of this machine: versitygw, which keeps buckets as folders. Built with Go where it is missing."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from contract_tests.worlds.go import go_program
from contract_tests.worlds.java import CACHE, CannotRun
from contract_tests.worlds.process import free_port, serving

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw"
VERSION = "v1.8.0"
KEY, SECRET = "irc-bridge-tests", "no-secret-at-all"


@dataclass(frozen=True)
class S3:
    endpoint: str
    folder: Path

    def bucket(self, name: str) -> str:
        """A new empty bucket; gives its URI. The server takes each folder for one."""
        folder = self.folder / f"{name}-{uuid4().hex[:12]}"
        folder.mkdir()
        return f"s3://{folder.name}"

    @property
    def options(self) -> Mapping[str, str]:
        return {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }


@contextmanager
def s3_server(folder: Path, *arguments: str, keep_alive: bool = True) -> Iterator[S3]:
    """The server over a folder. CannotRun where there is none and no Go to build it. Where it keeps connections
    alive it refuses the uploads of pyarrow."""
    port = free_port()
    kept = ["--keep-alive"] if keep_alive else []
    command = [versitygw(), "--port", f"127.0.0.1:{port}", *kept, "--quiet", *arguments]
    url = f"http://127.0.0.1:{port}"
    keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    with serving([*command, "posix", str(folder)], url, keys):
        yield S3(url, folder)


def versitygw() -> str:
    """From our cache, the path or Go's own folder; else built."""
    name = "versitygw"
    for folder in (CACHE / "bin" / VERSION, None, Path.home() / "go" / "bin"):
        if found := shutil.which(name, path=folder):
            return found
    try:
        return go_program(VERSITYGW, VERSION)
    except CannotRun as reason:
        raise CannotRun(f"no S3 server: {reason}") from None
