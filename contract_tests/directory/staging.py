"""Lance writers that commit through the version operations, and manifests that they staged and left to us."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import lance_namespace as ln
import pyarrow as pa
from lance.fragment import write_fragments
from lance_namespace import LanceNamespace

from contract_tests.directory.opened import Directory, load, open_in, rows
from irc_bridge.catalog.models import History, Levels, NewVersion, TableInfo, VersionRecord
from irc_bridge.errors import (
    ConcurrentModification,
    Conflict,
    TableNotFound,
    TableVersionAlreadyExists,
    TableVersionNotFound,
)

Options = Mapping[str, str] | None

TABLE: Levels = ("t",)

_SUFFIX = len("-") + 36
"""What a staged manifest has behind its name."""


@dataclass(frozen=True)
class Request:
    """What pylance asked a namespace to make a version."""

    version: int
    manifest_path: str
    manifest_size: int
    e_tag: str
    naming_scheme: str

    def entry(self, table: Levels, **changed: Any) -> NewVersion:
        asked = {"version": self.version, "staged_path": self.manifest_path, **changed}
        return NewVersion(table, **asked)


class Listener(LanceNamespace):
    """Answers as if it made the version, and leaves the staged manifest where it is."""

    def __init__(self, location: str) -> None:
        self._location = location
        self.heard: list[Request] = []

    def namespace_id(self) -> str:
        return "listener"

    def declare_table(self, request: Any) -> ln.DeclareTableResponse:
        return ln.DeclareTableResponse(location=self._location, managed_versioning=True)

    def list_table_versions(self, request: Any) -> ln.ListTableVersionsResponse:
        return ln.ListTableVersionsResponse(versions=[])

    def create_table_version(self, request: Any) -> Any:
        asked = dict(request)
        names = ("version", "manifest_path", "manifest_size", "e_tag", "naming_scheme")
        self.heard.append(Request(**{name: asked[name] for name in names}))
        final = asked["manifest_path"][:-_SUFFIX]
        return {"version": {**asked, "manifest_path": final}}


def stage(
    location: str,
    *ids: int,
    version: int | None = None,
    options: Options = None,
    data: pa.Table | None = None,
) -> Request:
    """Rows appended to the table as it was at a version, up to the staged manifest."""
    dataset = lance.dataset(location, version=version, storage_options=dict(options or {}) or None)
    data = rows(*ids).cast(dataset.schema) if data is None else data
    fragments = write_fragments(data, dataset, mode="append")
    listener = Listener(location)
    lance.LanceDataset.commit(
        dataset,
        lance.LanceOperation.Append(fragments),
        read_version=dataset.version,
        max_retries=0,
        namespace_client=listener,
        table_id=["t"],
        namespace_client_managed_versioning=True,
    )
    return listener.heard[0]


def stage_first(location: str, *ids: int, options: Options = None, v2_names: bool = True) -> Request:
    """The first version of a declared table, up to the staged manifest."""
    listener = Listener(location)
    lance.write_dataset(
        rows(*ids),
        namespace_client=listener,
        table_id=["t"],
        mode="create",
        storage_options=dict(options or {}) or None,
        enable_v2_manifest_paths=v2_names,
    )
    return listener.heard[0]


class ThroughPort(LanceNamespace):
    """What a protocol front does with the version operations: requests in, records out, errors by their codes."""

    def __init__(self, catalog: Directory, options: Options = None) -> None:
        self._catalog = catalog
        self._options = dict(options or {}) or None

    def namespace_id(self) -> str:
        return json.dumps({"catalog": id(self._catalog)})

    def describe_table(self, request: Any) -> ln.DescribeTableResponse:
        try:
            info = self._catalog.load_table(tuple(dict(request)["id"]), History.HEADS)
        except TableNotFound as error:
            raise ln.errors.TableNotFoundError(error.message) from error
        assert isinstance(info, TableInfo)
        return ln.DescribeTableResponse(
            location=info.location, managed_versioning=True, storage_options=self._options
        )

    def list_table_versions(self, request: Any) -> ln.ListTableVersionsResponse:
        asked = dict(request)
        page = self._catalog.list_table_versions(tuple(asked["id"]), limit=asked.get("limit"))
        return ln.ListTableVersionsResponse(versions=[_wire(each) for each in page.items])

    def describe_table_version(self, request: Any) -> ln.DescribeTableVersionResponse:
        asked = dict(request)
        try:
            found = self._catalog.describe_table_version(tuple(asked["id"]), asked.get("version"))
        except TableVersionNotFound as error:
            raise ln.errors.TableVersionNotFoundError(error.message) from error
        return ln.DescribeTableVersionResponse(version=_wire(found))

    def create_table_version(self, request: Any) -> ln.CreateTableVersionResponse:
        asked = dict(request)
        entry = NewVersion(
            tuple(asked["id"]),
            asked["version"],
            asked["manifest_path"],
            asked["naming_scheme"],
            asked["e_tag"],
        )
        try:
            [made] = self._catalog.create_table_versions([entry])
        except Conflict as error:
            raise ln.errors.ConcurrentModificationError(error.message) from error
        return ln.CreateTableVersionResponse(version=_wire(made))


def _wire(record: VersionRecord) -> ln.TableVersion:
    """As Lance names manifests: from the root of the storage system."""
    _, _, rest = record.manifest_path.partition("://")
    return ln.TableVersion(
        version=record.version,
        manifest_path=rest.partition("/")[2],
        manifest_size=record.manifest_size,
        e_tag=record.e_tag,
        timestamp_millis=record.timestamp_ms,
    )


def append_through(
    catalog: Directory, table: Levels, data: pa.Table, options: Options = None
) -> lance.LanceDataset:
    return lance.write_dataset(
        data,
        namespace_client=ThroughPort(catalog, options),
        table_id=list(table),
        mode="append",
        storage_options=dict(options or {}) or None,
    )


def commit_all(mode: str, root: Path, who: int, count: int) -> Counter[str]:
    """Versions of the table `t`: each is staged again until it wins."""
    catalog = open_in(mode, root)
    location = load(catalog, TABLE).location
    outcomes: Counter[str] = Counter()
    for number in range(count):
        won = False
        while not won:
            asked = stage(location, who * 100 + number)
            try:
                [made] = catalog.create_table_versions([asked.entry(TABLE)])
                assert made.version == asked.version
                won = True
                outcomes[f"made {made.version}"] += 1
            except (TableVersionAlreadyExists, ConcurrentModification) as error:
                outcomes[type(error).__name__] += 1
    return outcomes
