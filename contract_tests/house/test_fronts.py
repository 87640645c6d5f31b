"""A second front beside the protocols, such as metrics or a console, is a route and no other change."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from contract_tests.worlds.process import free_port
from irc_bridge.cli.backends import open_warehouses
from irc_bridge.cli.options import settings_of
from irc_bridge.server import create_app

TOKEN = "0123456789"


async def console(request: Request) -> Response:
    """Knows who asks, as a log line or an audit does."""
    request.state.operation = "console"
    return PlainTextResponse(f"{request.path_params['page']} for {request.state.principal}")


def app_with_a_front(root: Path) -> Starlette:
    return create_app(
        open_warehouses(settings_of(None, root=str(root))),
        token=TOKEN,
        any_host=False,
        allowed_origins=(),
        trusted_proxies=(),
        max_body_bytes=1000,
        max_create_body_bytes=1000,
        fronts=[Route("/console/{page}", console)],
    )


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=(port := free_port()), log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def test_a_front_is_a_route(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-ID": "mine"}
    with caplog.at_level("INFO", "irc_bridge.access"), served(app_with_a_front(tmp_path)) as url:
        assert requests.get(f"{url}/console/tables", timeout=30).status_code == 401, "the token guards it"
        page = requests.get(f"{url}/console/tables", headers=headers, timeout=30)
        assert (page.status_code, page.text) == (200, "tables for token")
        assert page.headers["X-Request-ID"] == "mine"
        assert requests.post(f"{url}/console/tables", headers=headers, timeout=30).status_code == 405
        assert requests.get(f"{url}/v1/main/namespaces", headers=headers, timeout=30).status_code == 200
        unknown = requests.get(f"{url}/consoles", headers=headers, timeout=30)
        assert unknown.json()["error"]["code"] == 404, "the catch-all is the last route"
    assert [line.split("ms ")[1] for line in caplog.messages if "GET /console/" in line and " 200 " in line] == [
        "operation=console principal=token"
    ]
