"""Coded vectors on their way: from who codes them to who writes their partition.

A block has rows of one partition, as a message of Arrow without its schema, which the model says.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.units import MIB
from pennon.index.base import Values
from pennon.index.vector.build.new_index import batch_of, row_fields
from pennon.index.vector.build.opened_index import coded_of
from pennon.index.vector.build.partitions import Block, Sorted, coded_blocks, coder_of
from pennon.index.vector.model import Coded, Coder, Model

HELD_BYTES: Final = 32 * MIB
"""Of codes that are gathered before they are sent on: the more, the larger blocks are."""
BLOCK_BYTES: Final = MIB
"""Of codes in a block, about: whoever carries blocks holds some of them."""


def cut_blocks(parts: Iterable[Values], model: Model) -> Generator[tuple[int, bytes], None, None]:
    """Yield the vectors of a column coded: the number of a partition, and rows of it."""
    coder = coder_of(model)
    held: list[Block] = []
    size = 0
    for found, coded in coded_blocks(parts, model):
        held.append((found, coded))
        size += sum(each.nbytes for each in (coded.rows, *coded.columns))
        if size >= HELD_BYTES:
            yield from _cut(held, model, coder)
            held, size = [], 0
    if held:
        yield from _cut(held, model, coder)


def _cut(held: list[Block], model: Model, coder: Coder) -> Iterator[tuple[int, bytes]]:
    for number, part in Sorted.of(held, model.partitions).filled():
        for piece in _pieces(part):
            yield number, batch_of([piece], coder).serialize().to_pybytes()


def _pieces(part: Coded) -> Iterator[Coded]:
    """Yield some rows at a time; vectors of one row stay together, so that they stay in order."""
    rows = part.rows
    size = sum(each.nbytes for each in (rows, *part.columns))
    step = max(BLOCK_BYTES * len(rows) // size, 1)
    start = 0
    while start < len(rows):
        end = min(start + step, len(rows))
        while end < len(rows) and rows[end] == rows[end - 1]:
            end += 1
        yield part.at(slice(start, end))
        start = end


def gathered(
    blocks: Iterable[tuple[int, bytes]], model: Model, first: int, end: int
) -> Iterator[Coded]:
    """Yield the rows of the partitions from ``first`` to ``end``, of blocks that come in the order of their numbers.

    Rows of a partition are in the order of their own numbers, whoever sent them first.
    """
    schema = pa.schema(row_fields(coder_of(model)))
    due = first
    for number, several in groupby(blocks, itemgetter(0)):
        for _ in range(due, number):
            yield _none(schema)
        batches = [pa.ipc.read_record_batch(data, schema) for _, data in several]
        whole = Coded.joined([coded_of(each.columns) for each in batches])
        del batches
        yield whole.at(np.argsort(whole.rows, kind="stable"))
        due = number + 1
    for _ in range(due, end):
        yield _none(schema)


def _none(schema: pa.Schema) -> Coded:
    return coded_of(pa.RecordBatch.from_pylist([], schema).columns)
