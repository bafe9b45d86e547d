"""The value ranges that satisfy a condition on one column.

::

    a = 5                      5 to 5
    a > 3 AND 8 >= a           3, left out, to 8
    a IN (7, 2)                2 to 2, 7 to 7

Sorted values are looked through for them by halving.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.expr.comparisons import comparison, conjuncts
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.order import Keys, order_of


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Ranges of values, ascending; range i is from ``low`` i to ``high`` i.  None: there is one, without that bound.

    ``takes_low`` and ``takes_high``: the bounds are among what is wanted.
    """

    low: Keys | None = None
    high: Keys | None = None
    takes_low: bool = True
    takes_high: bool = True

    def __len__(self) -> int:
        keys = self.low or self.high
        return 1 if keys is None else len(keys)

    def part(self, start: int, end: int) -> Wanted:
        """Return some ranges that follow one another."""
        low = None if self.low is None else self.low.part(start, end)
        high = None if self.high is None else self.high.part(start, end)
        return Wanted(low, high, self.takes_low, self.takes_high)

    def begins(self, keys: Keys) -> Int64Array:
        """Return how many of some keys, which ascend, come before each range."""
        if self.low is None:
            return np.zeros(1, np.int64)
        return keys.places(self.low, behind=not self.takes_low)

    def ends(self, keys: Keys) -> Int64Array:
        """Return how many of some keys, which ascend, come before the end of each range."""
        if self.high is None:
            return np.full(1, len(keys), np.int64)
        return keys.places(self.high, behind=self.takes_high)

    def meets(self, low: Keys, high: Keys) -> npt.NDArray[np.bool_]:
        """Return of each stretch of values, from ``low`` to ``high``, whether a range may meet it; they need not ascend."""
        begun = (
            np.ones(len(high)) if self.low is None else self.low.places(high, behind=self.takes_low)
        )
        is_over = not self.takes_high
        ended = np.zeros(len(low)) if self.high is None else self.high.places(low, behind=is_over)
        found: npt.NDArray[np.bool_] = begun > ended
        return found


def wanted_of(condition: Expression) -> Wanted | None:
    """Return what a condition wants of its column; None of conditions that want something else."""
    if isinstance(condition, Call) and condition.function == "IN":
        return _listed(condition)
    found = Wanted()
    for each in conjuncts(condition):
        compared = comparison(each)
        if compared is None or compared[1] == "!=":
            return None
        _, function, value = compared
        keys = Keys.of_one(value)
        merged = None if keys is None else _merged(found, function, keys)
        if merged is None:
            return None
        found = merged
    return found


def _listed(condition: Call) -> Wanted | None:
    column, literal = condition.arguments
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    items = literal.value.values
    if items.type != column.type:
        return None
    items = items.drop_null()
    keys = Keys.of(items)
    if keys is None:
        return None
    if len(items) > 1:
        keys = Keys.of(items.take(pa.array(order_of(items))))
    return Wanted(keys, keys)


def _merged(found: Wanted, function: str, keys: Keys) -> Wanted | None:
    """Return a range with one more bound; None where it has that one."""
    low, high = found.low, found.high
    takes_low, takes_high = found.takes_low, found.takes_high
    if function in {"=", ">", ">="}:
        if low is not None:
            return None
        low, takes_low = keys, function != ">"
    if function in {"=", "<", "<="}:
        if high is not None:
            return None
        high, takes_high = keys, function != "<"
    return Wanted(low, high, takes_low, takes_high)
