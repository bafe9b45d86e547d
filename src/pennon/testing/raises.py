"""An assertion that a block raises, for suites that run without pytest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Caught:
    """The error that a block raised; None while the block runs."""

    error: BaseException | None = None


@contextmanager
def raises(kind: type[BaseException]) -> Iterator[Caught]:
    """Fail unless the block raises an error of a kind."""
    caught = Caught()
    try:
        yield caught
    except kind as error:
        caught.error = error
        return
    message = f"{kind.__name__} was not raised"
    raise AssertionError(message)
