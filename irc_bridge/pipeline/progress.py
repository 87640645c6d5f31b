import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(label: str, done_of: Callable[[], tuple[int, int]]) -> Iterator[Callable[[], None]]:
    """Gives a function that shows how many of how many are done, on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(label, total=None)

        def show() -> None:
            done, total = done_of()
            progress.update(bar, completed=done, total=total or None)

        yield show
