"""The fragments of a manifest; a table may have very many.

Opening a table, taking a row of it, or appending to it needs few of them or none.  So what a manifest
holds stays bytes until somebody looks at it, and a new manifest takes the bytes over.  What is asked
of all fragments is known without making one; their ids and rows are checked at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from pennon.errors import FormatError
from pennon.schema.version import FileVersion
from pennon.table.fragment import MAX_FRAGMENT_ID, MAX_ROWS, Fragment
from pennon.table.fragment_wire import Tuples, out_of_bounds, parse_one_of_many, serialize_fragments
from pennon.table.kernels.manifest_fragments import find_fragments

_START, _END, _ID, _ROWS, _FLAGS, _DELETED, _FILES, _VERSION, _SIZE = range(1, 10)
_PLACES = slice(_END + 1)
"""The columns that are positions in the message."""
_HAS_DELETION, _HAS_ROW_IDS, _HAS_UNKNOWN, _IS_MIXED = 1, 2, 4, 8


class Fragments(Sequence[Fragment]):
    """Fragments in scan order, each made of its bytes when it is first asked for.

    It is equal to a tuple of the same fragments.
    """

    __slots__ = ("_body", "_made", "_numbers", "_runs", "_tuples", "_wrong")

    def __init__(self, body: bytes | memoryview) -> None:
        """Take a manifest message, whole or with nothing but fragments; FormatError if it is none.

        Its bytes are kept, and must stay what they are.
        """
        try:
            found = find_fragments(body, MAX_FRAGMENT_ID, MAX_ROWS)
        except ValueError as error:
            raise FormatError(str(error)) from None
        self._numbers, self._runs, self._wrong = found
        self._body = memoryview(body)
        self._made: dict[int, Fragment] = {}
        self._tuples: Tuples = {}

    @classmethod
    def of(cls, fragments: Iterable[Fragment]) -> Fragments:
        """Return fragments as their bytes."""
        return (
            fragments if isinstance(fragments, Fragments) else cls(serialize_fragments(fragments))
        )

    def check_bounds(self) -> None:
        """Raise FormatError for an id or a number of rows that does not fit a row address."""
        if self._wrong >= 0:
            number, rows = self._numbers[self._wrong, [_ID, _ROWS]].tolist()
            raise out_of_bounds(number, rows)

    # What is asked of all

    def ids(self) -> list[int]:
        """Return the id of each fragment; none is made for that."""
        found: list[int] = self._numbers[:, _ID].tolist()
        return found

    def highest_id(self) -> int:
        """Return the highest id, -1 of no fragments."""
        return int(self._numbers[:, _ID].max(initial=-1))

    def live_rows(self) -> list[int | None]:
        """Return the number of live rows of each fragment, None where its files must be asked.

        They are asked, too, where no row would live: whoever believes a wrong count hides living rows.
        """
        rows, deleted = self._numbers[:, _ROWS], self._numbers[:, _DELETED]
        has_deletion = self._have(_HAS_DELETION)
        is_known = (rows > 0) & (~has_deletion | ((deleted > 0) & (deleted < rows)))
        is_known |= (rows == 0) & (self._numbers[:, _FILES] == 0) & ~has_deletion
        pairs = zip((rows - deleted).tolist(), is_known.tolist(), strict=True)
        return [live if known else None for live, known in pairs]

    def total_rows(self) -> tuple[int, int]:
        """Return the numbers of rows and of deleted rows, as far as the manifest tells them."""
        return self._sum(_ROWS), self._sum(_DELETED)

    def total_files(self) -> tuple[int, int]:
        """Return the number of data files, and of their bytes as far as the manifest tells them."""
        return self._sum(_FILES), self._sum(_SIZE)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return rows, deleted rows and bytes of each fragment, as far as the manifest tells them; shape (n, 3)."""
        found: npt.NDArray[np.int64] = self._numbers[:, [_ROWS, _DELETED, _SIZE]].astype(np.int64)
        return found

    def deletion_files(self) -> int:
        """Return how many fragments have a deletion file."""
        return int(np.count_nonzero(self._have(_HAS_DELETION)))

    def with_row_ids(self) -> int:
        """Return how many fragments have stable row ids."""
        return int(np.count_nonzero(self._have(_HAS_ROW_IDS)))

    def file_numbers(self) -> set[tuple[int, int]]:
        """Return the version numbers of all data files, as they stand in the manifest."""
        is_mixed = self._have(_IS_MIXED)
        codes = self._numbers[~is_mixed & (self._numbers[:, _FILES] > 0), _VERSION]
        is_one = len(codes) > 0 and bool((codes == codes[0]).all())
        known = codes[:1] if is_one else np.unique(codes)
        found = {divmod(code, 1 << 32) for code in known.tolist()}
        for number in np.flatnonzero(is_mixed).tolist():
            found |= {(file.major, file.minor) for file in self[number].files}
        return found

    # The message

    def wire(self) -> bytes:
        """Return the fragments as they stand in a manifest message."""
        return b"".join(self.wire_parts())

    def wire_parts(self) -> list[memoryview]:
        """Return the parts of a manifest message that hold the fragments; nothing is copied."""
        return [self._body[start:end] for start, end in self._runs]

    def read_from(self) -> memoryview:
        """Return the bytes that the message is a part of: those of a whole file, if it was read from one."""
        return memoryview(self._body.obj)

    def rest(self) -> bytes:
        """Return the manifest message without its fragments."""
        parts, done = [], 0
        for start, end in self._runs:
            parts.append(self._body[done:start])
            done = end
        return b"".join([*parts, self._body[done:]])

    def _have(self, flag: int) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self._numbers[:, _FLAGS] & flag != 0
        return found

    def _sum(self, column: int) -> int:
        return sum(self._numbers[:, column].tolist())

    # What a tuple has

    def __len__(self) -> int:
        """Return the number of fragments."""
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        """Return one fragment, or some; raises FormatError if it is damaged."""
        if isinstance(index, slice):
            return tuple(map(self.__getitem__, range(len(self))[index]))
        found = self._made.get(index)
        if found is None:
            number = range(len(self))[index]
            found = self._made.setdefault(number, self._make(number))
        return found

    def _make(self, number: int) -> Fragment:
        record: list[int] = self._numbers[number].tolist()
        data = bytes(self._body[record[_START] : record[_END]])
        has_unknown = bool(record[_FLAGS] & _HAS_UNKNOWN)
        return parse_one_of_many(data, self._tuples, may_hold_unknown=has_unknown)

    def __iter__(self) -> Iterator[Fragment]:
        """Yield all fragments."""
        return map(self.__getitem__, range(len(self)))

    def __add__(self, others: Iterable[Fragment]) -> Fragments:
        """Return these fragments, then others."""
        new = serialize_fragments(others)
        body = b"".join([*self.wire_parts(), new])
        is_one_run = len(self._runs) == 1
        more = self._followed_by(Fragments(new), body) if is_one_run else Fragments(body)
        more._made.update(self._made)
        return more

    def _followed_by(self, others: Fragments, body: bytes) -> Fragments:
        """Return these fragments, which lie in one run, then others; their bytes are not parsed again."""
        (start, end), size = self._runs[0], len(self)
        made = object.__new__(Fragments)
        made._numbers = np.concatenate([self._numbers, others._numbers])
        if start:
            made._numbers[:size, _PLACES] -= start
        made._numbers[size:, _PLACES] += end - start
        made._runs = [(0, len(body))]
        made._wrong = self._wrong if self._wrong >= 0 or others._wrong < 0 else size + others._wrong
        made._body, made._made, made._tuples = memoryview(body), {}, {}
        return made

    def __eq__(self, other: object) -> bool:
        """Compare fragment by fragment."""
        if self is other:
            return True
        return (
            tuple(self) == tuple(other) if isinstance(other, Fragments | tuple) else NotImplemented
        )

    def __hash__(self) -> int:
        """Hash the fragments, as a tuple does."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return the fragments, as a tuple shows them."""
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[Fragments], tuple[bytes]]:
        """Pickle the bytes."""
        return Fragments, (self.wire(),)


def highest_fragment_id(fragments: Iterable[Fragment]) -> int:
    """Return the highest id, -1 of no fragments."""
    if isinstance(fragments, Fragments):
        return fragments.highest_id()
    return max((fragment.id for fragment in fragments), default=-1)


def fragment_ids(fragments: Iterable[Fragment]) -> list[int]:
    """Return the id of each fragment."""
    if isinstance(fragments, Fragments):
        return fragments.ids()
    return [fragment.id for fragment in fragments]


def file_versions(fragments: Iterable[Fragment]) -> frozenset[FileVersion]:
    """Return the versions of all data files.  Raises FormatError for numbers that never were."""
    if isinstance(fragments, Fragments):
        numbers = fragments.file_numbers()
    else:
        numbers = {(file.major, file.minor) for fragment in fragments for file in fragment.files}
    return frozenset(FileVersion.from_numbers(*each) for each in numbers)
