import asyncio
import logging
from typing import Any


class OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "\\n".join(super().format(record).splitlines())


class WithoutCancellations(logging.Filter):
    """A request that is cancelled because the server ends is no error of the application."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _stream(formatter: str) -> dict[str, Any]:
    return {
        "class": "logging.StreamHandler",
        "stream": "ext://sys.stderr",
        "formatter": formatter,
        "filters": ["cancellations"],
    }


LOG_CONFIG: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"cancellations": {"()": "irc_bridge.cli.logs.WithoutCancellations"}},
    "formatters": {
        "message": {"()": "irc_bridge.cli.logs.OneLine", "format": "%(asctime)s %(levelname)s %(message)s"},
        "named": {
            "()": "irc_bridge.cli.logs.OneLine",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        },
    },
    "handlers": {"ours": _stream("message"), "others": _stream("named")},
    "loggers": {"irc_bridge": {"level": "INFO", "handlers": ["ours"], "propagate": False}},
    "root": {"level": "WARNING", "handlers": ["others"]},
}
