"""Errors of executors, which reach the driver as a text inside Java's. Errors of this project arrive unchanged; of
other errors one line is left."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from irc_bridge import errors
from irc_bridge.errors import BridgeError, Internal, InvalidInput

_MARK = "irc-bridge failed: "
_MARKED = re.compile(re.escape(_MARK) + r'(\{"error": .*\})$', re.MULTILINE)
_TASK = re.compile(r"^(?:Job aborted due to stage failure: )?Task .* failed \d+ times.*?: ", re.DOTALL)
_JAVA = re.compile(r"^(?:: )?(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)?: ")
_LONGEST = 500


class FailedInExecutor(Exception):
    pass


@contextmanager
def in_executor() -> Iterator[None]:
    try:
        yield
    except BridgeError as error:
        raise _marked(type(error).__name__, error.message) from None
    except Exception as error:
        raise _marked(Internal.__name__, f"{type(error).__name__}: {error}") from error


@contextmanager
def spark_errors(what: str) -> Iterator[None]:
    """`what` completes the sentence "Spark could not"."""
    try:
        yield
    except BridgeError:
        raise
    except Exception as error:
        raise _translated(what, error) from error


def _marked(name: str, message: str) -> FailedInExecutor:
    return FailedInExecutor(_MARK + json.dumps({"error": name, "message": message}))


def _translated(what: str, error: Exception) -> BridgeError:
    if found := _MARKED.search(str(error)):
        said = json.loads(found[1])
        made: BridgeError = getattr(errors, said["error"])(said["message"])
        return made
    from pyspark.errors import AnalysisException, ParseException

    if isinstance(error, (AnalysisException, ParseException)):
        return InvalidInput(f"Spark could not {what}: {why(error)}")
    return Internal(f"Spark could not {what}: {why(error)}")


def why(error: BaseException) -> str:
    """One line of it."""
    text = str(error)
    java = getattr(error, "java_exception", None)
    if java is not None:
        cause = java
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.getMessage() or cause.toString())
    text = _JAVA.sub("", _TASK.sub("", text.strip()))
    if "java.io.EOFException" in text:
        return "a Python worker died, perhaps for want of memory"
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    return lines[0][:_LONGEST]
