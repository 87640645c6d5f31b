"""A writer dies (kill -9) after its commit, over a server that does not know Lance: nothing is lost."""

import signal
import subprocess
import sys

import lance
import lance_namespace as ln
import pytest

from contract_tests.client.catalogs import Catalog, rows

DEATHS = {
    "after the commit": "irc_bridge.backends.upstream.version_commit.finish",
    "before the final name": "irc_bridge.lance_store.version_files.VersionFiles.promote",
    "before the staged manifest goes": "irc_bridge.storage.local.LocalStorage.retire",
}
DYING = """
import os, pkgutil, signal, sys
import lance
from contract_tests.client.catalogs import PLAIN, Catalog, rows
from irc_bridge.irc_client.server import IrcServer

url, root, namespace, target = sys.argv[1:]
owner, _, name = target.rpartition(".")
owner, send = pkgutil.resolve_name(owner), IrcServer.commit

def commit(*args):
    answer = send(*args)
    setattr(owner, name, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    return answer

IrcServer.commit = commit
connected = Catalog(PLAIN, url, False, {"root": root}).connect()
lance.write_dataset(rows(1), namespace_client=connected, table_id=[namespace, "t"], mode="append")
"""


@pytest.fixture
def table(plain: Catalog, name: str) -> list[str]:
    """With one version, to which a writer added another and died."""
    namespace = plain.connect()
    namespace.create_namespace(ln.CreateNamespaceRequest(id=[name]))
    lance.write_dataset(rows(0), namespace_client=namespace, table_id=[name, "t"], mode="create")
    return [name, "t"]


def die(plain: Catalog, table: list[str], death: str) -> None:
    arguments = [plain.url, plain.properties["root"], table[0], DEATHS[death]]
    died = subprocess.run([sys.executable, "-c", DYING, *arguments], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()[-2000:]
    assert plain.version(table) == 2


def manifests(plain: Catalog, table: list[str]) -> list[str]:
    listed = plain.connect().list_table_versions(ln.ListTableVersionsRequest(id=table))
    return [each.manifest_path.rpartition("/")[2] for each in listed.versions]


FINAL = [f"{2**64 - 1 - version}.manifest" for version in (1, 2)]


@pytest.mark.parametrize("death", DEATHS)
def test_the_next_reader_sees_the_version_and_finishes_it(plain: Catalog, table: list[str], death: str) -> None:
    die(plain, table, death)
    found = lance.dataset(namespace_client=plain.connect(), table_id=table)
    assert (found.version, found.count_rows()) == (2, 2)
    assert manifests(plain, table) == FINAL
    assert lance.dataset(found.uri).version == 2  # also past the catalog


@pytest.mark.parametrize("death", DEATHS)
def test_the_next_writer_goes_on_from_it(plain: Catalog, table: list[str], death: str) -> None:
    die(plain, table, death)
    lance.write_dataset(rows(2), namespace_client=plain.connect(), table_id=table, mode="append")
    found = lance.dataset(namespace_client=plain.connect(), table_id=table)
    assert sorted(found.to_table()["id"].to_pylist()) == [0, 1, 2]
    assert plain.version(table) == 3


def test_a_writer_that_held_the_table_finishes_what_beat_it(plain: Catalog, table: list[str]) -> None:
    held = lance.dataset(namespace_client=plain.connect(), table_id=table)
    die(plain, table, "after the commit")
    held.insert(rows(2))
    found = lance.dataset(namespace_client=plain.connect(), table_id=table)
    assert sorted(found.to_table()["id"].to_pylist()) == [0, 1, 2]
    assert (found.version, plain.version(table)) == (3, 3)
