"""The web process: its socket, its workers and its end."""

import asyncio
import errno
import functools
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors.multiprocess import Multiprocess

from irc_bridge.catalog.warehouses import Warehouses
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.logs import LOG_CONFIG, leave_out_what_no_line_shows
from irc_bridge.cli.temporary import keep_parents_folder
from irc_bridge.errors import InvalidInput, ServiceUnavailable
from irc_bridge.server import create_app
from irc_bridge.server.connections import Connections, most_connections
from irc_bridge.server.protocol import HttpConnection
from irc_bridge.settings import Settings

REQUEST_GRACE_SECONDS = 2
WORKER_END_SECONDS = 3
WORKER_START_SECONDS = 60
WORKER_CHECK_SECONDS = 0.5

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
    """Returns after SIGINT or SIGTERM, and ignores these signals from then on. Call `end` afterwards, because a
    storage call may still hold a thread. `any_host` lets clients call a server without a token by other names than
    localhost."""
    try:
        if settings.server.workers == 1:
            _Server(_config(settings, lambda: _app(settings, warehouses, any_host)), announce).run([listener])
        else:
            factory = functools.partial(build_app, settings, any_host)
            _Supervisor(_config(settings, factory), listener, announce).run()
    except KeyboardInterrupt:
        return
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


def end() -> NoReturn:
    """Ends the process without waiting for threads: one may hang in a storage call for ever, and none has
    state."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def build_app(settings: Settings, any_host: bool) -> Starlette:
    """The application of a worker process. The Ctrl-C of a terminal reaches every process; a worker ignores it and
    is ended by its supervisor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_parents_folder()
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
    # objects made at start-up are never collected; scanning them again and again took 5 % of the time
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


_ENDING = (signal.SIGINT, signal.SIGTERM)


class _Server(uvicorn.Server):
    """uvicorn's server with other signal handlers: a signal takes effect when it comes, not at the next tick; it
    is not raised again after the server has ended, which would write a traceback at the second Ctrl-C; and SIGHUP
    does not kill the process."""

    def __init__(self, config: uvicorn.Config, announce: Announce) -> None:
        super().__init__(config)
        self._announce = announce
        self._signal = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        loop = asyncio.get_running_loop()

        def handle(number: int, frame: FrameType | None) -> None:
            self.handle_exit(number, frame)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._signal.set)

        for number in _ENDING:
            signal.signal(number, handle)
        if sys.platform != "win32":
            # a closed terminal ends the server; others mean by SIGHUP to reload, and nothing is to reload
            signal.signal(signal.SIGHUP, handle if os.isatty(0) else signal.SIG_IGN)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, but the application hears of the end at the second Ctrl-C too."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    async def main_loop(self) -> None:
        second = 0
        while not await self.on_tick(second * 10):
            second += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._signal.wait()

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

    def run(self) -> None:
        """As uvicorn's, but a signal is handled when it comes, not after the pause between two checks."""
        receiver, sender = socket.socketpair()
        receiver.setblocking(False)
        sender.setblocking(False)
        signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        self.init_processes()
        while not self.should_exit.is_set():
            select.select([receiver], [], [], WORKER_CHECK_SECONDS)
            with suppress(BlockingIOError):
                receiver.recv(1024)
            self.handle_signals()
            self.keep_subprocess_alive()
        self.terminate_all()
        self.join_all()

    def join_all(self) -> None:
        """Kills workers that do not end in time, or at once at a second signal."""
        deadline = time.monotonic() + WORKER_END_SECONDS
        while any(process.process.is_alive() for process in self.processes):
            if time.monotonic() > deadline or self.signal_queue:
                break
            time.sleep(0.02)
        for process in self.processes:
            if process.process.is_alive():
                process.kill()
            process.process.join()
