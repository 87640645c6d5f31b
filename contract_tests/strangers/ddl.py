"""Lists of DDL statements that engines run on Lance tables as on the tables of the reference server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest

from contract_tests.worlds.bridge import Server
from contract_tests.worlds.servers import reference_server

REFERENCE, DIR, IRC = "reference", "dir", "irc"
PLACES = [REFERENCE, DIR, IRC]
BRIDGED = [DIR, IRC]
CONFIGURATION = """\
[warehouses.dir]
root = "{folder}/dir"
[warehouses.irc]
backend = "irc"
uri = "{url}"
"""


@dataclass(frozen=True)
class Place:
    """A catalog, and a namespace that its list alone uses."""

    name: str
    uri: str

    @property
    def warehouse(self) -> str:
        return "" if self.name == REFERENCE else self.name

    @property
    def namespace(self) -> str:
        return f"of_{self.name}"

    @property
    def nowhere(self) -> str:
        """A namespace that is not there."""
        return f"not_of_{self.name}"

    @property
    def properties(self) -> dict[str, str]:
        """What a new table needs to be a Lance table."""
        return {"table_type": "lance"} if self.name == IRC else {}


class Engine(Protocol):
    def run(self, statement: str) -> None: ...

    def columns(self, name: str) -> list[Any]: ...


def require_refused(
    engines: Mapping[str, Engine],
    place: str,
    preparation: Sequence[str],
    statement: str,
    error: type[Exception],
    reason: str,
) -> None:
    """The reference server takes the statement. Of a Lance table it is refused with the reason, and the columns of
    the table stay. `preparation` are the statements that make the schema and the table."""
    for name in (REFERENCE, place):
        engine = engines[name]
        for each in preparation:
            engine.run(each)
        before = engine.columns("d")
        if name == REFERENCE:
            engine.run(statement)
        else:
            with pytest.raises(error, match=reason):
                engine.run(statement)
            assert engine.columns("d") == before
        for each in ("d", "p"):
            engine.run(f"DROP TABLE IF EXISTS {{ns}}.{each}")


@contextmanager
def three_places(folder: Path) -> Iterator[Mapping[str, Place]]:
    (folder / "behind").mkdir()
    with ExitStack() as stack:
        url = stack.enter_context(reference_server(folder / "behind"))
        (folder / "irc-bridge.toml").write_text(CONFIGURATION.format(folder=folder, url=url))
        server = stack.enter_context(Server("--port", "0", cwd=folder))
        yield {name: Place(name, url if name == REFERENCE else server.url) for name in PLACES}
        assert "Traceback" not in server.text()


@dataclass(frozen=True)
class Result:
    outcome: str
    """`done`, or what kind of error came."""
    shown: Any
    """What the engine shows of the tables afterwards."""


Act = Callable[[], Any]


def result(act: Act, show: Act, kind: Callable[[Exception], str]) -> Result:
    try:
        act()
        outcome = "done"
    except Exception as error:  # noqa: BLE001
        outcome = kind(error)
    return Result(outcome, show())


def results_of(
    run: Callable[[str], Any], show: Act, kind: Callable[[Exception], str], statements: Sequence[str]
) -> dict[str, Result]:
    """By the numbered statement, because one may come twice."""
    return {
        name: result(partial(run, statement), show, kind)
        for name, statement in zip(numbered(statements), statements, strict=True)
    }


def numbered(statements: Sequence[str]) -> list[str]:
    return [f"{number} {statement}" for number, statement in enumerate(statements)]


Results = Mapping[str, Mapping[str, Result]]
"""Place -> step -> what came of it."""


LENIENT = "the reference server makes tables in namespaces that are not there"
"""Which the kit takes for a failure. Such a step must end in another way in a folder."""


def require_same(results: Results, place: str, step: str, refused: Mapping[str, str]) -> None:
    """`refused` are steps that only the reference server does, with the kind of the error of a folder."""
    here, there = results[place][step], results[REFERENCE][step]
    if place == DIR and step in refused:
        assert (there.outcome, here.outcome) == ("done", refused[step]), f"no longer so: {LENIENT}"
    else:
        assert here == there, f"{place}: {here}\nreference server: {there}"


def steps(names: Sequence[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("step", names)


def bridged() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", BRIDGED)
