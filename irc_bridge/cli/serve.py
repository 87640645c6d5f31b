import ipaddress
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irc_bridge import __version__
from irc_bridge.cli.options import config_option, host_option, port_option, settings_of
from irc_bridge.cli.output import say, warn
from irc_bridge.errors import InvalidInput

if TYPE_CHECKING:
    from irc_bridge.settings import Settings


@click.command()
@click.argument("root", required=False)
@config_option
@host_option("Address to listen on; 127.0.0.1 unless set.")
@port_option("Port to listen on; 8181 unless set, 0 for any free one.")
@click.option("--workers", metavar="N", type=click.IntRange(1), help="Server processes; 1 unless set.")
@click.option("--insecure", is_flag=True, help="Without a token: let others reach the server, by any host name.")
def serve(
    root: str | None, config: Path | None, host: str | None, port: int | None, workers: int | None, insecure: bool
) -> None:
    """Serve folders of Lance tables to Iceberg clients and to Lance writers.

    ROOT is a folder or a URI such as s3://bucket/prefix and becomes the warehouse `main`. Without ROOT the
    warehouses of the settings file are served, without such a file the folder ./warehouse.
    """
    settings = settings_of(config, root=root, host=host, port=port, workers=workers)
    _refuse_open_host(settings, insecure)
    from irc_bridge.cli.process import end, listen, serve_until_signal
    from irc_bridge.cli.temporary import own_temporary_files

    listener = listen(settings.server.host, settings.server.port)
    _make_default_root(settings)
    from irc_bridge.cli.backends import open_warehouses

    with own_temporary_files():
        warehouses = open_warehouses(settings)

        def announce() -> None:
            say(_banner(settings, listener, config))

        serve_until_signal(settings, warehouses, listener, announce, insecure)
    end()


def _refuse_open_host(settings: "Settings", insecure: bool) -> None:
    host = settings.server.host
    if settings.server.token is not None:
        return
    if _is_loopback(host):
        if insecure:
            warn("warning: with --insecure and no token, any web page that the user visits may use this server")
        return
    if not insecure:
        raise InvalidInput(
            f"Others can reach {host} and no token is set: "
            "set IRC_BRIDGE__SERVER__TOKEN or IRC_BRIDGE__SERVER__TOKEN_FILE, or allow it with --insecure"
        )
    warn(f"warning: everybody who can reach {host} can read and change all tables, no token is set")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _make_default_root(settings: "Settings") -> None:
    for name, warehouse in settings.warehouses.items():
        folder = warehouse.folder_to_make
        if folder is not None and settings.sources.get(("warehouses", name, "root")) == "default":
            try:
                Path(folder).mkdir(exist_ok=True)
            except OSError as error:
                raise InvalidInput(f"The folder {folder} cannot be made: {error.strerror}") from None


def _banner(settings: "Settings", listener: socket.socket, config: Path | None) -> str:
    from irc_bridge.cli.engines import ENGINES, url
    from irc_bridge.masking import without_user_info

    port = listener.getsockname()[1]
    roots = {name: warehouse.place for name, warehouse in settings.warehouses.items()}
    others = ", ".join(engine for engine in ENGINES if engine != "pyiceberg")
    uri = url(settings.server.host, port)
    flags = "".join(f" --{name} {value}" for name, value in _flags_of_connect(settings, port, config).items())
    return "\n".join(
        (
            f"irc-bridge {__version__} serves an Iceberg REST Catalog at {uri}",
            f"  and the Lance REST namespace at {uri}/lance{'' if len(roots) == 1 else '/WAREHOUSE'}",
            *(f"  warehouse {name}: {without_user_info(root)}" for name, root in roots.items()),
            f"  access: {'bearer token' if settings.server.token else 'open, no token is set'}",
            f"  next: irc-bridge connect pyiceberg{flags}   (or {others})",
            "  Ctrl-C ends it.",
        )
    )


def _flags_of_connect(settings: "Settings", port: int, config: Path | None) -> dict[str, object]:
    """The flags that `connect` needs to find this server, beside the settings."""
    flags: dict[str, object] = {}
    if config is not None:
        flags["config"] = config
    if settings.sources.get(("server", "host")) == "--host":
        flags["host"] = settings.server.host
    if settings.sources.get(("server", "port")) == "--port" or settings.server.port != port:
        flags["port"] = port
    return flags
