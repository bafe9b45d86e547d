"""Mixing tables by weights: which table gives the row at each position.

The weights become small whole numbers, the *parts*: 0.7 and 0.3 are 7 and 3.  Positions form cycles of as
many rows as there are parts (10); each cycle has exactly 7 rows of the first table and 3 of the second, in
an order of its own.  So the table at a position, and its row, are a pure function of the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm
from typing import Final

import numpy as np

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.training.order import Order, order_key

_MOST_PARTS: Final = 10_000
_FINEST: Final = 100
"""A weight that is no whole number becomes a fraction with this denominator at most."""


def parts_of(weights: Sequence[float]) -> tuple[int, ...]:
    """Return whole numbers in the ratio of weights.  Raises ArgumentError unless all are finite and above 0."""
    for weight in weights:
        if isinstance(weight, bool) or not 0 < weight < float("inf"):
            message = f"a weight must be a finite number above 0, not {weight!r}"
            raise ArgumentError(message)
    exact = [Fraction(weight) for weight in weights]
    if any(each.denominator > 1 for each in exact):
        total = sum(exact)
        exact = [
            max((each / total).limit_denominator(_FINEST), Fraction(1, _FINEST)) for each in exact
        ]
    scale = lcm(*(each.denominator for each in exact))
    parts = [int(each * scale) for each in exact]
    common = gcd(*parts)
    parts = [each // common for each in parts]
    if sum(parts) > _MOST_PARTS:
        parts = [max(round(each * 1000 / sum(parts)), 1) for each in parts]
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Orders of tables, and how many rows each gives to a cycle.

    An epoch ends before the first table would repeat a row.

    >>> a, b = pennon.training.Order(rows=70), pennon.training.Order(rows=60)
    >>> mixture = pennon.training.Mixture((a, b), (7, 3))
    >>> mixture.rows
    100
    >>> tables, rows = mixture.rows_at(epoch=0, start=0, end=10)
    >>> sorted(tables.tolist())
    [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    """

    orders: tuple[Order, ...]
    parts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Return the rows of an epoch."""
        if len(self.orders) == 1:
            return self.orders[0].rows
        cycles = min(
            order.rows // part for order, part in zip(self.orders, self.parts, strict=True)
        )
        return cycles * sum(self.parts)

    def rows_at(self, epoch: int, start: int, end: int) -> tuple[Int64Array, Int64Array]:
        """Return the number of the table, and its row, at positions ``start <= position < end`` of an epoch."""
        if len(self.orders) == 1:
            rows = self.orders[0].rows_at(epoch, start, end)
            return np.zeros(len(rows), np.int64), rows
        cycle_rows = sum(self.parts)
        firsts = np.cumsum([0, *self.parts])
        tables, rows = np.empty(end - start, np.int64), np.empty(end - start, np.int64)
        position = start
        while position < end:
            cycle, inside = divmod(position, cycle_rows)
            until = min(end, (cycle + 1) * cycle_rows)
            slots = self._slots(epoch, cycle).rows_at(epoch, inside, inside + until - position)
            owners = firsts.searchsorted(slots, side="right") - 1
            here = slice(position - start, until - start)
            tables[here] = owners
            for number, (order, part) in enumerate(zip(self.orders, self.parts, strict=True)):
                mine = np.flatnonzero(owners == number)
                own = order.rows_at(epoch, cycle * part, (cycle + 1) * part)
                rows[here][mine] = own[slots[mine] - firsts[number]]
            position = until
        return tables, rows

    def _slots(self, epoch: int, cycle: int) -> Order:
        """Return the order of the parts of a cycle."""
        return Order(
            sum(self.parts), order_key(self.orders[0].seed, epoch, cycle), self.orders[0].shuffle
        )
