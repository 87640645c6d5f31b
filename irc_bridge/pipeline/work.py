"""Pieces of work, spread over executors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from irc_bridge.pipeline.archives import keep_archives_read
from irc_bridge.pipeline.failures import in_executor, spark_errors
from irc_bridge.pipeline.progress import progress_bar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_SHARES = 16
"""So many Spark tasks at least for each core, while there is work: the last ones end at about the same time."""
_LOOK_S = 0.2


def run(
    spark: "SparkSession",
    work: Callable[[T], R],
    tasks: Sequence[T],
    weight: Callable[[T], int],
    label: str,
    worth: int = 1,
) -> list[R]:
    """The results of `work` for each task, in the order of the tasks. It runs in executors, and again where one
    dies. An error of this project that `work` raises is raised here. `label` stands beside the progress, such as
    "Mirroring". Tasks that weigh less than `worth` share a Spark task, which takes some 20 ms by itself."""
    if not tasks:
        return []
    context: Any = spark.sparkContext
    weights = [max(1, weight(each)) for each in tasks]
    groups = grouped(weights, max(worth, sum(weights) // (context.defaultParallelism * _SHARES)))
    pieces = [[(number, tasks[number]) for number in group] for group in groups]
    spread = context.parallelize(pieces, len(pieces)).flatMap(_Work(work))
    done = dict(watched(spark, spread.collect, label))
    return [done[number] for number in range(len(tasks))]


def watched(spark: "SparkSession", job: Callable[[], R], label: str) -> R:
    """The outcome of an action, with its progress on a terminal. Ctrl-C cancels what it runs."""
    from pyspark import InheritableThread

    context: Any = spark.sparkContext
    group = f"irc-bridge {uuid4().hex}"
    outcome: list[R] = []
    failure: list[BaseException] = []

    def act() -> None:
        try:
            context.setJobGroup(group, label, interruptOnCancel=True)
            outcome.append(job())
        except BaseException as error:  # noqa: BLE001  # raised in the thread that waits
            failure.append(error)

    thread = InheritableThread(target=act, session=spark, daemon=True)
    try:
        with progress_bar(label, lambda: _tasks_of(context.statusTracker(), group)) as show:
            thread.start()
            while thread.is_alive():
                thread.join(_LOOK_S)
                show()
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise
    with spark_errors(f"finish {label.lower()}"):
        if failure:
            raise failure[0]
    return outcome[0]


def grouped(weights: Sequence[int], share: int) -> list[list[int]]:
    """The numbers of the tasks, the heaviest first: each alone that weighs a share, lighter ones together."""
    order = sorted(range(len(weights)), key=lambda number: -weights[number])
    groups: list[list[int]] = []
    room = 0
    for number in order:
        if weights[number] > room:
            groups.append([])
            room = share
        groups[-1].append(number)
        room -= weights[number]
    return groups


class _Work:
    """A function that executors find by its class."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, group: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        keep_archives_read()
        with in_executor():
            for number, task in group:
                yield number, self._work(task)


def _tasks_of(tracker: Any, group: str) -> tuple[int, int]:
    """How many of its Spark tasks are done, and how many there are."""
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            if (found := tracker.getStageInfo(stage)) is not None:
                done, total = done + found.numCompletedTasks, total + found.numTasks
    return done, total
