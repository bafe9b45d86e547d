"""The read protocol: a reader says which bytes it wants, gets them, and goes on.

A reader is a generator.  Each ``yield`` is one *round*: a list of requests, answered by a list of
buffers in the same order.  What it returns at the end is its result.  Readers do no I/O themselves,
so a test can drive one by hand, and the number of rounds of any read can be counted.

`together` runs readers side by side, so that all their first requests go out as one round, and so
on: two columns of two rounds each cost two rounds, not four.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRequest

T = TypeVar("T")
Steps: TypeAlias = Generator[list[ByteRequest], list[pa.Buffer], T]


def together(readers: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run readers in lockstep, and return their results in order."""
    if len(readers) == 1:
        return [(yield from readers[0])]
    results: dict[int, T] = {}
    waiting: dict[int, list[ByteRequest]] = {}
    for number, reader in enumerate(readers):
        try:
            waiting[number] = next(reader)
        except StopIteration as stop:
            results[number] = stop.value
    while waiting:
        asked = waiting
        answers = yield [request for requests in asked.values() for request in requests]
        waiting = {}
        first = 0
        for number, requests in asked.items():
            mine = answers[first : first + len(requests)]
            first += len(requests)
            try:
                waiting[number] = readers[number].send(mine)
            except StopIteration as stop:
                results[number] = stop.value
    return [results[number] for number in range(len(readers))]


def run(reader: Steps[T], read: Callable[[list[ByteRequest]], list[pa.Buffer]]) -> T:
    """Drive one reader to its end; ``read`` answers one round (an `ObjectReader`'s method)."""
    try:
        requests = next(reader)
        while True:
            requests = reader.send(read(requests))
    except StopIteration as stop:
        result: T = stop.value
        return result
