"""Where commands hand what they have to say: as text, or as JSON for programs."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import click


class Output(Protocol):
    def rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Rows with the same keys."""

    def document(self, text: str, values: Mapping[str, Any]) -> None:
        """A text to paste, or the values that it is made of."""


class TextOutput:
    def rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for name in rows[0]:
            table.add_column(name.upper(), no_wrap=not sys.stdout.isatty(), overflow="fold")
        for row in rows:
            table.add_row(*(Text(_plain(value)) for value in row.values()))
        # A pipe has no width: nothing is folded or cut there.
        Console(width=None if sys.stdout.isatty() else 10_000).print(table)

    def document(self, text: str, values: Mapping[str, Any]) -> None:
        say(text)


class JsonOutput:
    def rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        say(json.dumps(rows, indent=2))

    def document(self, text: str, values: Mapping[str, Any]) -> None:
        say(json.dumps(values, indent=2))


def say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()


def warn(text: str) -> None:
    click.echo(f"irc-bridge: {text}", err=True)


def note(text: str) -> None:
    """Writes a line for a person to standard error. Standard output holds the rows, which a program may read."""
    click.echo(text, err=True)


def _plain(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def output_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--output",
        type=click.Choice(["text", "json"]),
        default="text",
        callback=lambda _context, _option, value: JsonOutput() if value == "json" else TextOutput(),
        help="How to print: text for people, json for programs.",
    )(command)
