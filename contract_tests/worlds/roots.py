"""The folder of a warehouse as somebody sees it who works on it past the bridge: with pylance and file by file.
Locations are those that clients are told."""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import lance
import pyarrow as pa
from obstore.store import S3Store

from contract_tests.worlds.writer import folder_of, rows


def without_manifest(files: Iterable[str]) -> list[str]:
    return sorted(file for file in files if "__manifest" not in file.split("/"))


class Root(ABC):
    uri: str
    options: Mapping[str, str]

    @abstractmethod
    def __str__(self) -> str:
        """As a person writes it."""

    def at(self, name: str) -> str:
        """The location of something in the root; the name has nothing to encode."""
        return f"{self.uri}/{name}"

    def write(self, location: str, data: pa.Table | None = None, mode: str = "create") -> Any:
        data = rows(3) if data is None else data
        return lance.write_dataset(data, location, mode=mode, storage_options=dict(self.options))

    def open(self, location: str) -> Any:
        return lance.dataset(location, storage_options=dict(self.options))

    @abstractmethod
    def plain(self, location: str) -> str:
        """The location as a person writes it."""

    @abstractmethod
    def put(self, location: str, content: bytes) -> None: ...

    @abstractmethod
    def read(self, location: str) -> bytes: ...

    @abstractmethod
    def make_folder(self, location: str) -> None: ...

    @abstractmethod
    def remove(self, location: str) -> None:
        """A file, or a folder with everything in it."""

    @abstractmethod
    def files(self, location: str | None = None) -> list[str]:
        """What lies below a location, or around the root and in it; without the manifest, which changes by itself
        when it is tidied."""

    @abstractmethod
    def exists(self, location: str) -> bool: ...


class LocalRoot(Root):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = folder.as_uri()
        self.options = {}

    def __str__(self) -> str:
        return str(self.folder)

    def plain(self, location: str) -> str:
        return str(folder_of(location))

    def put(self, location: str, content: bytes) -> None:
        file = folder_of(location)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def read(self, location: str) -> bytes:
        return folder_of(location).read_bytes()

    def make_folder(self, location: str) -> None:
        folder_of(location).mkdir(exist_ok=True)

    def remove(self, location: str) -> None:
        path = folder_of(location)
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()

    def files(self, location: str | None = None) -> list[str]:
        """Folders too."""
        folder = self.folder.parent if location is None else folder_of(location)
        return without_manifest(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def exists(self, location: str) -> bool:
        return folder_of(location).exists()


class S3Root(Root):
    """In a bucket of its own."""

    def __init__(self, bucket: str, options: Mapping[str, str], folder: str = "tables") -> None:
        self.uri = f"{bucket}/{folder}"
        self.options = options
        self._bucket = bucket
        config: Any = {key: value for key, value in options.items() if key.startswith("aws_")}
        self._store = S3Store.from_url(bucket, config=config, client_options={"allow_http": True})

    def __str__(self) -> str:
        return self.uri

    def plain(self, location: str) -> str:
        return location

    def put(self, location: str, content: bytes) -> None:
        self._store.put(self._key(location), content)

    def read(self, location: str) -> bytes:
        return bytes(self._store.get(self._key(location)).bytes())

    def make_folder(self, location: str) -> None:
        """As consoles and Hadoop mark a folder that is empty."""
        from pyarrow.fs import S3FileSystem

        files = S3FileSystem(
            access_key=self.options["aws_access_key_id"],
            secret_key=self.options["aws_secret_access_key"],
            endpoint_override=self.options["aws_endpoint"],
            region=self.options["aws_region"],
        )
        files.create_dir(unquote(location.removeprefix("s3://")))

    def remove(self, location: str) -> None:
        key = self._key(location)
        keys = [f"{key}/{name}" for name in self.files(location)]
        with suppress(FileNotFoundError):
            self._store.delete([*keys, key])

    def files(self, location: str | None = None) -> list[str]:
        prefix = "" if location is None else self._key(location) + "/"
        listed = (each["path"] for chunk in self._store.list(prefix) for each in chunk)
        return without_manifest(path.removeprefix(prefix) for path in listed)

    def exists(self, location: str) -> bool:
        if self.files(location):
            return True
        with suppress(FileNotFoundError):
            return bool(self._store.head(self._key(location)))
        return False

    def _key(self, location: str) -> str:
        return unquote(location.removeprefix(self._bucket + "/"))
