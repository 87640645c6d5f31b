"""The program that counts the rows that match a predicate, in a process of its own: Lance's native code may end
the process that it runs in, or fill its memory.

It reads one request per line from its standard input and writes one answer per line to its standard output. It
ends with its standard input, so that it never outlives the server; when it had nothing to do for a while; and when
it holds much memory.
"""

import json
import os
import resource
import select
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import lance

from irc_bridge.errors import BridgeError, InvalidInput
from irc_bridge.lance_store.failures import Missing, lance_errors
from irc_bridge.storage.base import first_line, is_panic

_IDLE_S = 120
_NICE = 5
_STACK_BYTES = 64 * 1024 * 1024
_METADATA_CACHE_BYTES = 8 * 1024 * 1024
_STDIN = 0
_OF_FILES = "LanceError(IO)"
"""Begins what Lance says about files that cannot be read. All else is the predicate's fault."""
_LONG = 500

Json = Mapping[str, Any]


def main() -> None:
    seconds, budget = float(sys.argv[1]), int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what native code prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the server, whose end ends this too
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICE)
    allowed = _limit_memory(budget)
    threading.stack_size(_STACK_BYTES)
    answers.write(b"ready\n")
    while (line := _next_line()) is not None:
        # the kernel ends this process even where native code never returns
        signal.setitimer(signal.ITIMER_REAL, seconds)
        answer = _answer_to(json.loads(line))
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        if _memory() > allowed - budget // 2:
            return


def _limit_memory(budget: int) -> int:
    """Gives the bytes that this process may have: those that it has now and the budget."""
    allowed = _memory() + budget
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    return allowed


def _memory() -> int:
    """The bytes of private memory that count against the limit. 0 on systems that do not tell."""
    with suppress(OSError), open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
    return 0


def _next_line() -> bytes | None:
    """None when this process should end."""
    if not select.select([_STDIN], [], [], _IDLE_S)[0]:
        return None
    line = sys.stdin.buffer.readline()
    return line if line.endswith(b"\n") else None


def _answer_to(request: Json) -> Json:
    """Counts in another thread, and ends this process when the server ends meanwhile."""
    answer: dict[str, Any] = {}
    done, finished = os.pipe()

    def count() -> None:
        answer.update(_count(request))
        os.close(finished)

    threading.Thread(target=count, daemon=True).start()
    ready, _, _ = select.select([_STDIN, done], [], [])
    if done not in ready:
        os._exit(0)
    os.close(done)
    return answer


def _count(request: Json) -> Json:
    """The count, or the name and the message of an error."""
    try:
        with lance_errors(request["location"]):
            dataset = lance.dataset(
                request["uri"],
                version=request["version"],
                storage_options=request["options"] or None,
                session=lance.Session(  # type: ignore[attr-defined]
                    index_cache_size_bytes=0, metadata_cache_size_bytes=_METADATA_CACHE_BYTES
                ),
            )
            return {"count": _matching(dataset, request["predicate"])}
    except (BridgeError, Missing) as error:
        return {"error": type(error).__name__, "message": str(error)}


def _matching(dataset: lance.LanceDataset, predicate: str) -> int:
    try:
        # without the brackets Lance's parser takes no notice of what follows an expression
        return int(dataset.count_rows(f"({predicate})"))
    except BaseException as error:
        why = first_line(error)
        is_of_predicate = is_panic(error) or (isinstance(error, OSError | ValueError) and _OF_FILES not in why)
        if not is_of_predicate or "not found:" in why.lower():
            raise
        shown = predicate if len(predicate) < _LONG else f"{predicate[:_LONG]}..."
        why = why.replace(predicate, shown).removeprefix("Invalid user input: ")
        raise InvalidInput(f"predicate: {why[: 3 * _LONG]}") from error


if __name__ == "__main__":
    main()
