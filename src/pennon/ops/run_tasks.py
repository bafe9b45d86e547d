"""Running the tasks of a plan on this machine's threads.

Every operation on a table is a plan, tasks that pickle, and one commit.  A task knows the pieces of
its work by their numbers, so that threads run it here, and Spark's executors elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Protocol, TypeVar

from pennon.core.thread_pools import PoolSpec, map_in_order
from pennon.file.container.losses import Losses
from pennon.ops.bars import bar, counted

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Task(Protocol[R_co]):
    """Work in numbered pieces that are independent of each other."""

    def run(self, number: int) -> R_co:
        """Do the piece of that number."""


def run_tasks(task: Task[R], count: int, *, what: str, threads: int | None = None) -> list[R]:
    """Return ``[task.run(number) for number in range(count)]``, worked on side by side.

    As many pieces as there are ``threads`` (by default, processors) are under way at once.  When one fails no more
    begin, and its error comes when the others have ended, so that nothing is written behind it.  On a terminal a bar says ``what`` is done, if it takes a while.  What
    files of version 0.1 do not hold is one warning (DataLossWarning) of all pieces.
    """
    pool_spec = PoolSpec("jobs", threads or os.cpu_count() or 1)
    losses = Losses()

    def run(number: int) -> R:
        with losses.gathered():
            return task.run(number)

    numbers = range(count)
    done_in_order = map_in_order(
        run, numbers, lambda _: 1, pool_spec.threads, pool_spec, is_finished=True
    )
    with closing(done_in_order) as results:
        done = list(_with_bar(results, count, what))
    losses.warn()
    return done


def _with_bar(results: Iterable[R], count: int, what: str) -> Iterator[R]:
    """Pass results on; show how many there are, on a terminal."""
    with bar(what) as tell:
        one_more = counted(tell, count)
        for result in results:
            one_more()
            yield result
