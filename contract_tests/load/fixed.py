"""The bytes of one file under every path, from the bridge's web server with the bridge's settings."""

import sys
from pathlib import Path

import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


def main(file: Path, port: int) -> None:
    answer = Response(file.read_bytes(), media_type="application/json")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await answer(scope, receive, send)

    uvicorn.run(app, port=port, lifespan="off", ws="none", access_log=False, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
