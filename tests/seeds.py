"""Many seeds of one check are one test: a loop, whose failure names the seed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def each_seed(count: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the test runs once for each ``seed`` from 0 to ``count`` - 1.

    All runs share the test's fixtures, so a test that writes to ``tmp_path`` names files by the seed.
    """

    def loop(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for seed in range(count):
                try:
                    test(seed=seed, **fixtures)
                except BaseException as error:
                    error.add_note(f"with seed {seed} of {count}")
                    raise

        signature = inspect.signature(test)
        kept = [given for name, given in signature.parameters.items() if name != "seed"]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return loop
