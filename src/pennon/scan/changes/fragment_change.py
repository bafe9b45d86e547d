"""Fragments that differ in two versions, and between which of them rows may have moved.

A row with a stable id that is updated goes from one fragment and comes to another.  Fragments know the lowest and the
highest id that they have, so most pairs need not be read to tell that no row moved between them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.table.fragment import ExternalFile, Fragment
from pennon.table.row_ids.decode_wire import row_id_bounds

_UNKNOWN = (0, (1 << 64) - 1)
_NONE = (1, 0)


@dataclass(frozen=True, slots=True)
class FragmentChange:
    """A fragment that differs in two versions; None where a version does not have it.

    ``written`` are the fields of both versions that lie elsewhere now.
    """

    before: Fragment | None
    after: Fragment | None
    written: frozenset[FieldId] = frozenset()

    @property
    def loses(self) -> bool:
        """Return whether the version may have deleted or moved away rows of the fragment."""
        return self.before is not None and self._lives_differ

    @property
    def gains(self) -> bool:
        """Return whether the version may have added or moved rows to the fragment."""
        return self.after is not None and self._lives_differ

    @property
    def _lives_differ(self) -> bool:
        before, after = self.before, self.after
        return before is None or after is None or before.deletion_file != after.deletion_file

    @property
    def sides(self) -> tuple[Fragment, ...]:
        """Return the fragment as the versions have it that have it."""
        return tuple(side for side in (self.before, self.after) if side is not None)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its files, before and behind the version."""
        return sum(file.size_bytes or 0 for side in self.sides for file in side.files)


class Moves:
    """Tells which fragments that differ may have rows of others, by their lowest and highest ids."""

    def __init__(self, changes: tuple[FragmentChange, ...]) -> None:
        self._changes = changes
        self._lost = {id(each): _bounds(each.before) for each in changes if each.loses}
        self._gained = {id(each): _bounds(each.after) for each in changes if each.gains}
        self._of_lost = _Ranges(changes, self._lost)
        self._of_gained = _Ranges(changes, self._gained)

    def meeting(self, some: Collection[FragmentChange]) -> tuple[FragmentChange, ...]:
        """Return the fragments that rows of some of them may have moved to, or come from."""
        meets = np.zeros(len(self._changes), np.bool_)
        for each in map(id, some):
            self._of_gained.mark(meets, self._lost.get(each, _NONE))
            self._of_lost.mark(meets, self._gained.get(each, _NONE))
        return tuple(self._changes[number] for number in np.flatnonzero(meets))


class _Ranges:
    """Ranges of ids of some fragments, both ends within."""

    def __init__(
        self, changes: tuple[FragmentChange, ...], bounds: Mapping[int, tuple[int, int]]
    ) -> None:
        known = [(number, *bounds.get(id(each), _NONE)) for number, each in enumerate(changes)]
        known = [each for each in known if each[1] <= each[2]]
        self._numbers = np.array([number for number, _, _ in known], np.int64)
        self._lowest = np.array([low for _, low, _ in known], np.uint64)
        self._highest = np.array([high for _, _, high in known], np.uint64)

    def mark(self, meets: npt.NDArray[np.bool_], other: tuple[int, int]) -> None:
        """Mark the fragments whose range has a number in common with another range, which may be empty."""
        low, high = other
        if low <= high:
            is_met = (self._lowest <= np.uint64(high)) & (self._highest >= np.uint64(low))
            meets[self._numbers[is_met]] = True


def _bounds(fragment: Fragment | None) -> tuple[int, int]:
    """Return the lowest and the highest id of a fragment's rows, or wider bounds."""
    if fragment is None or fragment.row_ids is None or isinstance(fragment.row_ids, ExternalFile):
        return _UNKNOWN
    return row_id_bounds(fragment.row_ids)
