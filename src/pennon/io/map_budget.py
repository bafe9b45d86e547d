"""Keeps the memory that maps occupy within a budget.

The system counts every page of a map that was touched as memory of the process, and takes it back
only when it runs short.  A scan of a table larger than a container's limit would look like a leak,
and some limits kill.  So maps tell what they hand out, and the oldest ranges are given back once
more than the budget is out.  That is safe at any time: a range that is touched again comes from the
file again, most likely from the page cache.

The budget holds for scans.  They pass through long ranges and do not come back, so of these no more
than half of it is kept: what takes look at stays.  A single byte can bring in up to 2 MiB, as the
system likes to map its page cache in large pieces; so rows that lie far apart are not read from the
map at all (`pennon.io.pread`).

While all maps together fit the budget nothing is given back, so small tables stay mapped; long ranges
are noted even so, for they may be the first of many.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import count, islice
from typing import Final, TypeAlias
from weakref import ReferenceType, ref

from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.mapping import Mapping, mapped_bytes
from pennon.core.thread_pools import in_forked_child
from pennon.core.units import KIB, MIB

BUDGET_BYTES = 128 * MIB
LONG_BYTES = 64 * KIB
"""From here on a range of which all is wanted is one that a scan passes through."""
TOUCH_BYTES = 64 * KIB
"""What one access is reckoned to cost at least: the system maps the pages around it too."""
_LATELY = 8
"""So many of the newest ranges are looked through for one of `LONG_BYTES` or more, which may be touched again."""


_SMALL_FILE_BYTES: Final = 2 * TOUCH_BYTES
_Place: TypeAlias = tuple[int, int, int]
"""The identity of a map, and a range of it."""


@dataclass(frozen=True, slots=True)
class _Span:
    mapping: ReferenceType[Mapping]
    place: _Place
    cost_bytes: int
    is_long: bool
    """Whether a scan passes through."""

    @property
    def position(self) -> int:
        """Return where the range begins."""
        return self.place[1]

    @property
    def end(self) -> int:
        """Return where the range ends."""
        return self.place[2]

    @property
    def is_scattered(self) -> bool:
        """Tell whether only some of the range was touched: other spans may lie within it."""
        return self.cost_bytes < self.end - self.position

    def covers(self, other: _Span) -> bool:
        """Tell whether another span lies within the range."""
        is_within = self.position <= other.position and other.end <= self.end
        return is_within and other.mapping is self.mapping


class Resident:
    """The ranges of all maps that were handed out lately, oldest first."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._numbers = count()
        self._spans: OrderedDict[int, _Span] = OrderedDict()
        self._total = 0
        self._numbers_of: dict[_Place, int] = {}
        """The numbers of ranges that were touched whole, by their places: a scan that is repeated touches them again."""
        self._long: OrderedDict[int, _Span] = OrderedDict()
        """Those of the ranges that are long."""
        self._long_total = 0

    def touch(self, mapping: Mapping, position: int, end: int, cost_bytes: int) -> None:
        """Note that ``[position, end)`` is about to occupy ``cost_bytes``; give back the oldest."""
        fits = mapped_bytes() <= self.budget_bytes
        size_bytes, cost_bytes = end - position, max(cost_bytes, TOUCH_BYTES)
        is_long = LONG_BYTES <= size_bytes <= cost_bytes
        if fits and not is_long:
            return
        if len(mapping) <= _SMALL_FILE_BYTES:  # all of it is mapped by a touch or two
            position, end = 0, len(mapping)
            cost_bytes = end
        if self._is_touched_again(mapping, position, end, cost_bytes):
            return
        span = _Span(ref(mapping), (id(mapping), position, end), cost_bytes, is_long)
        for old in self._push(span, fits=fits):
            behind = None if fits else old.mapping()
            if behind is not None:
                behind.forget(old.position, old.end - old.position)

    def _is_touched_again(self, mapping: Mapping, position: int, end: int, cost_bytes: int) -> bool:
        """Return whether this range of a map is on the account already; if so, make it the newest."""
        if cost_bytes < end - position:
            return False
        with self._lock:
            number = self._numbers_of.get((id(mapping), position, end))
            if number is None or self._spans[number].mapping() is not mapping:
                return False
            self._renew(number)
        return True

    def _push(self, span: _Span, *, fits: bool) -> list[_Span]:
        old: list[_Span] = []
        with self._lock:
            if span.end - span.position >= LONG_BYTES and self._is_counted(span):
                return old
            newest = self._add(span)
            while self._total > self.budget_bytes and len(self._spans) > 1:
                old.append(self._remove(next(iter(self._spans))))
                if old[-1].is_scattered:
                    self._drop_within(old[-1], newest)
            if span.is_long and not fits:
                old += self._drop_long()
        return old

    def _is_counted(self, span: _Span) -> bool:
        """Tell whether a range lies within one that was touched lately, which becomes the newest.

        What takes of the same columns touch again and again is in memory once.  Ranges that are within the new one are
        taken out of the account.
        """
        mapping, position, end = span.mapping, span.position, span.end
        for number in list(islice(reversed(self._spans), _LATELY)):
            old = self._spans[number]
            if old.mapping is not mapping:
                continue
            if old.position <= position and end <= old.end and not old.is_scattered:
                self._renew(number)
                return True
            if position <= old.position and old.end <= end and not span.is_scattered:
                self._remove(number)
        return False

    def _renew(self, number: int) -> None:
        self._spans.move_to_end(number)
        if number in self._long:
            self._long.move_to_end(number)

    def _add(self, span: _Span) -> int:
        number = next(self._numbers)
        self._spans[number] = span
        if not span.is_scattered:
            self._numbers_of[span.place] = number
        self._total += span.cost_bytes
        if span.is_long:
            self._long[number] = span
            self._long_total += span.cost_bytes
        return number

    def _remove(self, number: int) -> _Span:
        span = self._spans.pop(number)
        if self._numbers_of.get(span.place) == number:
            del self._numbers_of[span.place]
        self._total -= span.cost_bytes
        if self._long.pop(number, None) is not None:
            self._long_total -= span.cost_bytes
        return span

    def _drop_long(self) -> list[_Span]:
        """Take the oldest long ranges out of the account, until they are half of the budget."""
        gone = []
        while self._long_total > self.budget_bytes // 2 and len(self._long) > 1:
            gone.append(self._remove(next(iter(self._long))))
        return gone

    def _drop_within(self, gone: _Span, newest: int) -> None:
        """Take out of the account what goes along with a range, but for the newest, still to come."""
        covered = [number for number, span in self._spans.items() if gone.covers(span)]
        for number in covered:
            if number != newest:
                self._remove(number)


class _OfProcess:
    """The one account of this process; a child of a fork begins its own."""

    resident = Resident()


def keeps_account() -> bool:
    """Tell whether ranges are noted at all: not while all maps together fit the budget."""
    return mapped_bytes() > _OfProcess.resident.budget_bytes


def touch(mapping: Mapping, position: int, end: int, cost_bytes: int) -> None:
    """Note a range in this process's account (`Resident.touch`)."""
    _OfProcess.resident.touch(mapping, position, end, cost_bytes)


def _start_again() -> None:
    _OfProcess.resident = Resident()


in_forked_child(_start_again)
