"""The web process: its socket, its workers and its end."""

import errno
import functools
import gc
import os
import socket
import sys
import time
from collections.abc import Callable
from typing import NoReturn, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors.multiprocess import Multiprocess

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.logs import LOG_CONFIG, leave_out_what_no_line_shows
from irc_bridge.errors import InvalidInput, ServiceUnavailable
from irc_bridge.server import create_app
from irc_bridge.server.connections import Connections, most_connections
from irc_bridge.server.protocol import HttpConnection
from irc_bridge.settings import Settings

REQUEST_GRACE_SECONDS = 2
WORKER_END_SECONDS = 3
WORKER_START_SECONDS = 60

Announce = Callable[[], None]


def listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except UnicodeError:
        raise InvalidInput(f"Cannot listen on {host}: it is no host name") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InvalidInput(
                f"Port {port} on {host} is taken by another program: "
                "end that, or choose another port with --port (with make: PORT=8282)"
            ) from None
        raise InvalidInput(f"Cannot listen on {host} port {port}: {error.strerror}") from None


def serve_until_signal(
    settings: Settings, warehouses: Warehouses, listener: socket.socket, announce: Announce, any_host: bool = False
) -> None:
    """Returns after SIGINT or SIGTERM; a storage call may still hold a thread then, so follow it by `end`.
    `any_host` lets clients call a server without a token by other names than localhost."""
    try:
        if settings.server.workers == 1:
            _Server(_config(settings, lambda: _app(settings, warehouses, any_host)), announce).run([listener])
        else:
            factory = functools.partial(build_app, settings, any_host)
            _Supervisor(_config(settings, factory), listener, announce).run()
    except KeyboardInterrupt:
        return


def end() -> NoReturn:
    """Leaves without waiting for threads: one may hang in a storage call for ever, and none holds state."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def build_app(settings: Settings, any_host: bool) -> Starlette:
    """What a worker process runs."""
    return _app(settings, open_warehouses(settings), any_host)


def _app(settings: Settings, warehouses: Warehouses, any_host: bool) -> Starlette:
    leave_out_what_no_line_shows()
    token = settings.server.token
    app = create_app(
        warehouses,
        token=token.get_secret_value() if token else None,
        any_host=any_host,
        allowed_origins=settings.server.allowed_origins,
        trusted_proxies=settings.server.trusted_proxies,
        max_body_bytes=settings.server.max_body_bytes,
        max_create_body_bytes=settings.server.max_create_body_bytes,
    )
    # what is there by now stays: to look at it again and again takes a twentieth of the time
    gc.collect()
    gc.freeze()
    return app


def _config(settings: Settings, factory: Callable[[], Starlette]) -> uvicorn.Config:
    server = settings.server
    most = min(server.max_connections, most_connections())
    connections = Connections(most, server.idle_timeout, server.request_timeout)
    protocol = functools.partial(HttpConnection, connections=connections)
    return uvicorn.Config(
        factory,
        factory=True,
        workers=settings.server.workers,
        http=cast(type[HttpConnection], protocol),
        ws="none",
        access_log=False,
        log_config=LOG_CONFIG,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=REQUEST_GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, announce: Announce) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


class _Supervisor(Multiprocess):
    def __init__(self, config: uvicorn.Config, listener: socket.socket, announce: Announce) -> None:
        super().__init__(config, [listener])
        self._announce = announce

    def init_processes(self) -> None:
        super().init_processes()
        if not all(process.wait_until_ready(WORKER_START_SECONDS) for process in self.processes):
            self.terminate_all()
            self.join_all()
            raise ServiceUnavailable("A worker process did not start: the lines above say why")
        self._announce()

    def join_all(self) -> None:
        deadline = time.monotonic() + WORKER_END_SECONDS
        for process in self.processes:
            process.process.join(max(0.0, deadline - time.monotonic()))
            if process.process.is_alive():
                process.kill()
                process.join()
