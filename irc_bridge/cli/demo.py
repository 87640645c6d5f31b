import socket
from typing import TYPE_CHECKING

import click

from irc_bridge.cli.engines import ENGINES, Connection, url
from irc_bridge.cli.options import port_option
from irc_bridge.cli.output import say

if TYPE_CHECKING:
    from irc_bridge.catalog.warehouses import Warehouses
    from irc_bridge.settings import Settings

WAREHOUSE = "main"


@click.command()
@port_option("Port to listen on; 8181 unless set, 0 for any free one.")
def demo(port: int | None) -> None:
    """Serve three sample tables from a temporary folder and show how to connect.

    Reads no settings file and no environment; the folder is removed at the end.
    """
    from irc_bridge.cli.backends import open_warehouses
    from irc_bridge.cli.process import end, listen, serve_until_signal
    from irc_bridge.cli.temporary import DEMO, own_temporary_files, temporary_folder

    with temporary_folder(DEMO) as folder, own_temporary_files():
        settings = _settings(folder, port)
        listener = listen(settings.server.host, settings.server.port)
        warehouses = open_warehouses(settings)
        make_sample_tables(warehouses)
        serve_until_signal(settings, warehouses, listener, lambda: say(_welcome(listener, folder)))
    end()


def make_sample_tables(warehouses: "Warehouses") -> bool:
    """Makes the sample tables in the warehouse main, with a Parquet copy of every version. False when a copy
    failed."""
    from irc_bridge.cli.each_table import chosen_tables, each_table, results_of
    from irc_bridge.lance_store.samples import Writable, write_samples
    from irc_bridge.pipeline.mirroring import Mirroring, Versions, in_this_process

    catalog = warehouses[WAREHOUSE].catalog
    assert isinstance(catalog, Writable)
    write_samples(catalog)
    mirroring = Mirroring(Versions.parse("all"), in_this_process)
    _, whole = results_of(each_table(chosen_tables(warehouses, (), True), mirroring.bring, True))
    return whole


def _settings(folder: str, port: int | None) -> "Settings":
    from irc_bridge.backends.directory.settings import DirectorySettings
    from irc_bridge.settings import ServerSettings, Settings

    server = ServerSettings() if port is None else ServerSettings(port=port)
    return Settings(server=server, warehouses={WAREHOUSE: DirectorySettings(root=folder)}, sources={})


def _welcome(listener: socket.socket, folder: str) -> str:
    host, port, *_ = listener.getsockname()
    connection = Connection(url(host, port), WAREHOUSE, has_token=False, root=folder)
    snippets = [f"--- {engine}\n\n{snippet(connection).text}\n" for engine, snippet in ENGINES.items()]
    return "\n".join(
        (
            f"irc-bridge serves an Iceberg REST Catalog at {connection.uri}",
            f"  and the Lance REST namespace at {connection.uri}/lance",
            "Its Lance tables, which lie in a temporary folder, with a Parquet mirror for Iceberg engines:",
            "  default.products        4 products with a vector column",
            "  default.orders          several versions, the tag first-day, deleted rows",
            "  sales.europe.customers  in a nested namespace",
            "",
            *snippets,
            "Ctrl-C ends it and removes the folder.",
        )
    )
