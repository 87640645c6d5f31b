"""Commits that become the very next version of what they started from, or nothing at all. Left to itself Lance
moves a commit on top of those that came first wherever it sees no conflict."""

from typing import Any

import lance

from irc_bridge.lance_store.failures import Lost, Missing, lance_errors
from irc_bridge.storage.base import Storage
from irc_bridge.storage.layout import VERSIONS, name_of


class _Staging:
    """Lance asks its namespace to make a staged manifest a version. This one answers as if it had: what counts is
    decided afterwards, where Lance may be called again and errors are not taken for unknown outcomes."""

    def __init__(self, final: str) -> None:
        self._final = final
        self.version = 0
        self.name = ""

    def namespace_id(self) -> str:
        return self._final

    def create_table_version(self, request: Any) -> Any:
        asked = dict(request)
        above, _, self.name = asked["manifest_path"].rpartition("/")
        self.version = asked["version"]
        return {"version": {**asked, "manifest_path": f"{above}/{self._final}"}}


def commit_next(
    storage: Storage,
    path: str,
    dataset: lance.LanceDataset,
    newest: str,
    operation: Any,
) -> lance.LanceDataset:
    """The dataset after the commit. `newest` is the name of the manifest that `dataset` was opened from. Raises
    Lost when another commit came first, which put-if-absent decides."""
    version = dataset.version + 1
    final = name_of(version, newest)
    staging = _Staging(final)
    try:
        with lance_errors(storage.location(path)):
            committed = lance.LanceDataset.commit(
                dataset,
                operation,
                read_version=dataset.version,
                max_retries=0,
                namespace_client=staging,  # type: ignore[arg-type]  # its base class takes a second to import
                table_id=[path],
                namespace_client_managed_versioning=True,
            )
    except Missing as error:
        raise Lost(f"{storage.location(path)} was changed by another writer") from error
    staged = f"{path}/{VERSIONS}/{staging.name}"
    won = staging.version == version and storage.promote(staged, f"{path}/{VERSIONS}/{final}")
    storage.delete(staged)
    if not won:
        raise Lost(f"{storage.location(path)} was changed by another writer")
    return committed
