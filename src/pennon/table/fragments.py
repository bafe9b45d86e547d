"""The fragments of a manifest, of which a table may have very many.

Opening a table, or taking a row of it, needs few of them or none.  So what a manifest holds stays a
message until somebody looks at it.  What all fragments need is checked before: their ids and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, overload

from pennon.errors import FormatError
from pennon.proto import table_pb2
from pennon.table.manifest import Fragment
from pennon.table.messages import MAX_FRAGMENT_ID, MAX_ROWS, parse_fragment, parse_fragments

_Messages: TypeAlias = "Sequence[table_pb2.DataFragment]"


class Fragments(Sequence[Fragment]):
    """Fragments in scan order, each made of its message when it is first asked for.

    It is equal to a tuple of the same fragments, and pickles as one.
    """

    __slots__ = ("_holds_unknown", "_messages", "_parsed")

    def __init__(self, messages: _Messages, holds_unknown: Callable[[], bool]) -> None:
        """Take messages; raises FormatError for an id or a number of rows out of bounds.

        ``holds_unknown`` tells whether any of them has fields that Pennon does not know.
        """
        for message in messages:
            if message.id > MAX_FRAGMENT_ID or message.physical_rows > MAX_ROWS:
                text = (
                    f"fragment {message.id} of {message.physical_rows} rows does not fit a row"
                    " address"
                )
                raise FormatError(text)
        self._messages = messages
        self._holds_unknown = holds_unknown
        self._parsed: dict[int, Fragment] | tuple[Fragment, ...] = {}

    def all(self) -> tuple[Fragment, ...]:
        """Return all fragments; raises FormatError if one of them is damaged."""
        if isinstance(self._parsed, dict):
            known = self._parsed
            made = parse_fragments(self._messages, may_hold_unknown=self._holds_unknown())
            self._parsed = tuple(known.get(n, fragment) for n, fragment in enumerate(made))
        return self._parsed

    def ids(self) -> list[int]:
        """Return the id of each fragment; none is made for that."""
        return [message.id for message in self._messages]

    def live_rows(self) -> list[int | None]:
        """Return the number of live rows of each fragment, None where its files must be asked."""
        return [_live_rows(message) for message in self._messages]

    def __len__(self) -> int:
        """Return the number of fragments."""
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Fragment, ...]: ...
    def __getitem__(self, index: int | slice) -> Fragment | tuple[Fragment, ...]:
        """Return one fragment, or some."""
        parsed = self._parsed
        if isinstance(parsed, tuple):
            return parsed[index]
        if isinstance(index, slice):
            return self.all()[index]
        number = range(len(self))[index]
        found = parsed.get(number)
        if found is None:
            found = parsed.setdefault(number, parse_fragment(self._messages[number]))
        return found

    def __iter__(self) -> Iterator[Fragment]:
        """Yield all fragments."""
        return iter(self.all())

    def __add__(self, others: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
        """Return these fragments, then others."""
        return self.all() + others

    def __eq__(self, other: object) -> bool:
        """Compare fragment by fragment."""
        if isinstance(other, Fragments):
            return self is other or self.all() == other.all()
        return self.all() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        """Hash the fragments, as a tuple does."""
        return hash(self.all())

    def __repr__(self) -> str:
        """Return the fragments, as a tuple shows them."""
        return repr(self.all())

    def __reduce__(self) -> tuple[type[tuple[Fragment, ...]], tuple[tuple[Fragment, ...]]]:
        """Pickle as a tuple."""
        return tuple, (self.all(),)


def _live_rows(message: table_pb2.DataFragment) -> int | None:
    rows = message.physical_rows
    if not rows:
        return None
    if not message.HasField("deletion_file"):
        return rows
    deleted = message.deletion_file.num_deleted_rows
    return max(rows - deleted, 0) if deleted else None
