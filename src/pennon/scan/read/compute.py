"""Computation on the columns of a query: its condition, and computed columns.

Either needs columns of its own, which may be others than those that are shown, or parts of structs
of which all is shown.  They are named by their paths in the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB
from pennon.encoding.arrow_buffers import arrow_offsets
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Expression, paths_of
from pennon.expr.types import is_bytes, is_text
from pennon.scan.predicate import Predicate, SqlPredicate
from pennon.scan.projection import Projection, plan_take_projection
from pennon.scan.read.batches import cut_batches
from pennon.scan.read.fragment_reader import Chunks
from pennon.schema.field import Schema

FEW_ROWS: Final = 1 << 15
"""Of so few rows Arrow's functions take longer to be called than to compare."""
ROWS_AT_ONCE: Final = 1 << 17
"""Rows of which an expression is evaluated at once: what comes out between stays in the caches."""
WRITTEN_OUT_BYTES: Final = 256 * MIB
"""Items of a dictionary are written out for no more rows at once than have so many bytes."""
LEAST_ITEM_BYTES: Final = WRITTEN_OUT_BYTES // ROWS_AT_ONCE
"""A dictionary that has fewer bytes has no item that is too wide."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate, and the columns that it needs of a table."""

    predicate: Predicate
    inputs: Projection
    schema: pa.Schema

    def passing(self, columns: Sequence[Chunks], rows: int) -> Int64Array | None:
        """Return the numbers of the rows that pass, where that costs less than a mask; else None."""
        if rows > FEW_ROWS or len(columns) != 1 or len(columns[0]) != 1:
            return None
        test = self.predicate.of_few if isinstance(self.predicate, SqlPredicate) else None
        return None if test is None else test.passing(columns[0][0])

    def mask(self, columns: Sequence[Chunks], rows: int) -> pa.BooleanArray:
        """Return true for the rows that pass; ``columns`` are those of `inputs`."""
        batches = cut_batches(columns, [rows], rows_at_once(columns), self.schema)
        masks: list[Any] = [self.predicate.test(batch) for batch in batches]
        return masks[0] if len(masks) == 1 else pa.concat_arrays(masks)


@dataclass(frozen=True, slots=True)
class Computed:
    """Expressions that become columns, and the columns that they need of a table."""

    expressions: Mapping[str, Expression]
    inputs: Projection
    schema: pa.Schema

    @classmethod
    def of(cls, expressions: Mapping[str, Expression], schema: Schema) -> Computed:
        """Bind expressions to a table."""
        paths = dict.fromkeys(chain.from_iterable(map(paths_of, expressions.values())))
        inputs = inputs_of(schema, list(paths))
        return cls(expressions, inputs, inputs.arrow)

    def run(self, columns: Sequence[Chunks], rows: int) -> dict[str, Chunks]:
        """Return the values of each expression; ``columns`` are those of `inputs`."""
        found: dict[str, Chunks] = {name: [] for name in self.expressions}
        for batch in cut_batches(columns, [rows], rows_at_once(columns), self.schema):
            for name, expression in self.expressions.items():
                found[name].append(evaluate(expression, batch))
        return found


def rows_at_once(columns: Sequence[Chunks]) -> int:
    """Return how many rows to evaluate at once: no more than fit where dictionaries are written out."""
    widest = max(chain.from_iterable(map(_widest_items, columns)), default=1)
    return max(min(ROWS_AT_ONCE, WRITTEN_OUT_BYTES // max(widest, 1)), 1)


def _widest_items(chunks: Chunks) -> Iterator[int]:
    """Yield the bytes of the widest item of each dictionary of text or bytes."""
    for chunk in chunks:
        if isinstance(chunk, pa.DictionaryArray) and chunk.dictionary.nbytes > LEAST_ITEM_BYTES:
            kind = chunk.type.value_type
            if is_text(kind) or is_bytes(kind):
                yield int(np.diff(arrow_offsets(chunk.dictionary)).max(initial=0))


def inputs_of(schema: Schema, paths: Sequence[tuple[str, ...]]) -> Projection:
    """Return the projection that has what the paths lead to, structs as structs."""
    return plan_take_projection(schema, [_dotted(path) for path in paths])


def _dotted(path: tuple[str, ...]) -> str:
    if len(path) == 1:
        return path[0]
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
