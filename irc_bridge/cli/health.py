import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

import click

from irc_bridge.cli.output import Output, output_option
from irc_bridge.errors import InvalidInput
from irc_bridge.masking import without_user_info

PATH = "/health/ready"
SECONDS = 5
"""The server answers a probe after two seconds at most."""
LARGEST = 1024 * 1024
READY = ("up", "degraded")


@click.command()
@click.argument("url")
@output_option
def health(url: str, output: Output) -> None:
    """Ask a server whether it is ready; the exit code is 0 when it is.

    URL is the address of the server, such as http://127.0.0.1:8181. The server is ready while one of its
    warehouses is up.
    """
    is_ready, content = _answer(url)
    output.document(_line(content), content)
    if not is_ready:
        raise SystemExit(1)


def _answer(url: str) -> tuple[bool, Mapping[str, Any]]:
    """Whether the server is ready, and what it says of itself."""
    shown = without_user_info(url)
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{shown} is no address of a server: it starts with http:// or https://")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url.rstrip('/')}{PATH}", timeout=SECONDS) as answer:
            content = _content(answer.read(LARGEST), shown)
            return content["status"] in READY, content
    except urllib.error.HTTPError as answer:
        with answer:
            return False, _content(answer.read(LARGEST), shown)
    except (OSError, HTTPException, ValueError) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        return False, {"status": "unreachable", "reason": f"{shown} does not answer: {reason}"}


def _content(body: bytes, shown: str) -> Mapping[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if isinstance(content, dict) and isinstance(content.get("status"), str):
        return content
    return {"status": "unknown", "reason": f"What answers at {shown} is no irc-bridge"}


def _line(content: Mapping[str, Any]) -> str:
    reasons = [content["reason"]] if "reason" in content else []
    for check in content.get("checks", ()):
        if check.get("reason"):
            reasons.append(f"{check['name']}: {check['reason']}")
    if not reasons and content.get("down"):
        reasons.append(f"down: {', '.join(content['down'])}")
    return "; ".join((content["status"], *reasons))
