"""The lines of the table that a run prints."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from contract_tests.load.generator import Rate, Target, measure

SECONDS = 2
ROUNDS = 3


@dataclass(frozen=True)
class Line:
    what: str
    figure: str
    peer: str = ""
    ratio: str = ""
    target: str = ""
    ok: bool | None = None
    """None where there is no target or nothing could be measured."""


def at_least(what: str, figure: float, peer: float, wanted: float) -> Line:
    ratio = figure / peer
    return Line(what, f"{figure:,.0f}/s", f"{peer:,.0f}/s", f"{ratio:.2f}", f">= {wanted}", ratio >= wanted)


def at_most(what: str, figure: float, peer: float, wanted: float) -> Line:
    ratio = figure / peer
    return Line(what, f"{figure:.3f} ms", f"{peer:.3f} ms", f"{ratio:.2f}", f"<= {wanted}", ratio <= wanted)


def adds_at_most(what: str, figure: float, peer: float, wanted: float) -> Line:
    """How many milliseconds more."""
    more = figure - peer
    return Line(what, f"{figure:.3f} ms", f"{peer:.3f} ms", f"+{more:.2f} ms", f"<= +{wanted} ms", more <= wanted)


def counted(what: str, figure: float, wanted: float) -> Line:
    return Line(what, f"{figure:g}", target=f"<= {wanted:g}", ok=figure <= wanted)


def slower_at_most(what: str, rate: float, peer: float, wanted: float) -> Line:
    """How many times slower the rate may be."""
    ratio = peer / rate
    return Line(what, f"{rate:,.0f}/s", f"{peer:,.0f}/s", f"{ratio:.2f}", f"<= {wanted}", ratio <= wanted)


def beside(what: str, figure: float, peer: float) -> Line:
    return Line(what, f"{figure:.3f} ms", f"{peer:.3f} ms", f"{figure / peer:.2f}", "none")


def rate_beside(what: str, rate: float, peer: float) -> Line:
    return Line(what, f"{rate:,.0f}/s", f"{peer:,.0f}/s", f"{rate / peer:.2f}", "none")


def share_beside(what: str, figure: float, peer: float) -> Line:
    return Line(what, f"{figure:.2f}", f"{peer:.2f}", f"{figure / peer:.2f}" if peer else "", "none")


def left_out(what: str, reason: str) -> Line:
    return Line(what, f"left out: {reason}")


def rates(targets: dict[str, Target], connections: int) -> dict[str, Rate]:
    """Medians of rounds in which every target has its turn, after a warm-up."""
    for target in targets.values():
        measure(target, connections, SECONDS)
    rounds: dict[str, list[Rate]] = {name: [] for name in targets}
    for _ in range(ROUNDS):
        for name, target in targets.items():
            rounds[name].append(measure(target, connections, SECONDS))
    return {
        name: Rate(median(rate.per_second for rate in seen), median(rate.p50_ms for rate in seen))
        for name, seen in rounds.items()
    }


def rates_of(measures: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Medians of rounds in which each has its turn, after a warm-up."""
    for measure_once in measures.values():
        measure_once()
    seen = [{name: measure_once() for name, measure_once in measures.items()} for _ in range(rounds)]
    return {name: median(each[name] for each in seen) for name in measures}


def table(lines: list[Line]) -> str:
    verdicts = {True: "ok", False: "MISSED", None: "-"}
    rows = [("what", "figure", "peer", "ratio", "target", "")]
    rows += [(x.what, x.figure, x.peer, x.ratio, x.target, verdicts[x.ok]) for x in lines]
    widths = [max(len(row[column]) for row in rows if "left out" not in row[1]) for column in range(6)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
    )
