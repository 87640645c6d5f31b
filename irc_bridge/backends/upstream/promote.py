"""Against a server that does not know Lance: once a commit is in, the staged manifest gets its final name."""

from irc_bridge.catalog.models import NewVersion
from irc_bridge.errors import BrokenTable
from irc_bridge.irc_client.lance_tables import LanceTable
from irc_bridge.lance_store.table_files import TableFiles


def finish(table: LanceTable, files: TableFiles) -> None:
    """Of the current version, whoever committed it: who dies after the commit leaves the manifest staged, who dies
    after this has both names. It can be repeated, also by several at once."""
    from irc_bridge.lance_store.staged import retire
    from irc_bridge.storage.layout import names_of, version_of

    version = table.current
    manifest = table.manifests.get(version) if version is not None else None
    if table.knows_lance or version is None or not manifest:
        return
    name = manifest.rpartition("/")[2]
    if version_of(name) == version or files.holds(version):
        return
    at, staged = files.versions.staged(files.path, NewVersion((), version, manifest))
    final = name.partition("-")[0]
    if version_of(final) != version:
        final = names_of(version)["V2"]
    if staged is None:
        made = files.holds(version)
    else:
        made = files.versions.promote(files.path, at, staged.content, final)
    if not made:
        raise BrokenTable(
            f"Version {version} of the Lance table at {table.location} cannot be read: its catalog names the "
            f"manifest {manifest}, which is not there, or another file has its place"
        )
    if staged is not None:
        retire(files.storage, files.path, version, at)
        files.versions.remove_abandoned(files.path, version, final)
