import asyncio
import logging
import time
from typing import Any


class OneLine(logging.Formatter):
    """Every request writes a line, so the time is put into words once a second."""

    _second: tuple[int, str] = (0, "")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if text.isprintable() else "\\n".join(text.splitlines())

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        second, text = self._second
        if second != int(record.created):
            second = int(record.created)
            text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
            self._second = second, text
        return f"{text},{int(record.msecs):03d}"


class WithoutCancellations(logging.Filter):
    """A request that is cancelled because the server ends is no error of the application."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def leave_out_what_no_line_shows() -> None:
    """Looking these up takes a fifth of the time of a warm request."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def _stream(formatter: str) -> dict[str, Any]:
    return {
        "class": "logging.StreamHandler",
        "stream": "ext://sys.stdout",
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
