"""Functions that are computed row by row, in Python.

Arrow has no function for them, or only for literal arguments.  Arguments are checked for their
types; a row with a NULL among its arguments gives NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

from pennon.core.units import MIB
from pennon.expr.cast import Datum, widened

Run: TypeAlias = Callable[..., Datum]
Entry: TypeAlias = tuple[Run, int, int | None]
"""A function, and with how many arguments it is called at least and at most; None: with any number."""
Kind: TypeAlias = pa.DataType | Callable[..., pa.DataType]
MOST_BYTES: Final = 256 * MIB
"""What a function may make of one batch; ``repeat(s, 1000000000)`` is more."""
ROWS_AT_ONCE: Final = 4096
"""Values of so many rows are Python's own at once, which take several times the memory of Arrow's."""


def with_halves(run: Callable[..., Datum]) -> Run:
    """Return a function that computes half floats as 32-bit floats, and gives half floats for these.

    Arrow has no arithmetic of half floats.
    """

    def compute(*arguments: Datum) -> Datum:
        if not any(types.is_float16(each.type) for each in arguments):
            return run(*arguments)
        found = run(*map(widened, arguments))
        return found.cast(pa.float16()) if types.is_float32(found.type) else found

    return compute


def by_row(run: Callable[..., Any], kind: Kind, *takes: Callable[[pa.DataType], bool]) -> Run:
    """Return a function of arrays and scalars that calls ``run`` with the values of each row.

    ``kind`` is the type of the result, or a function from the types of the arguments to it.
    ``takes`` tells for each argument, the last for all that follow, which types it may have.
    """

    def compute(*arguments: Datum) -> Datum:
        check_types(arguments, takes)
        result = kind if isinstance(kind, pa.DataType) else kind(*(a.type for a in arguments))
        if any(is_null(each) for each in arguments):
            return nulls_like(arguments, result)
        if all(isinstance(each, pa.Scalar) for each in arguments):
            return pa.scalar(run(*(each.as_py() for each in arguments)), result)
        parts = [
            pa.array([None if None in row else run(*row) for row in rows_of(part)], result)
            for part in _parts_of(arguments)
        ]
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)

    return compute


def _parts_of(arguments: Sequence[Datum]) -> Iterator[list[Datum]]:
    """Yield arguments with at least one array for a few rows at a time; for no rows, once."""
    for start in range(0, count_of(arguments) or 1, ROWS_AT_ONCE):
        yield [
            each.slice(start, ROWS_AT_ONCE) if isinstance(each, pa.Array) else each
            for each in arguments
        ]


def or_by_row(fast: Run, slow: Run) -> Run:
    """Return ``fast`` for literals behind the first argument, ``slow`` for columns and NULLs."""

    def compute(first: Datum, *others: Datum) -> Datum:
        if all(isinstance(each, pa.Scalar) and each.is_valid for each in others):
            return fast(first, *others)
        return slow(first, *others)

    return compute


def rows_of(arguments: Sequence[Datum]) -> Iterable[tuple[Any, ...]]:
    """Yield the values of each row; one of the arguments is an array."""
    columns = [
        each.to_pylist() if isinstance(each, pa.Array) else repeat(each.as_py())
        for each in arguments
    ]
    return zip(*columns, strict=False)


def count_of(arguments: Iterable[Datum]) -> int | None:
    """Return how many rows there are; None if all arguments are scalars."""
    return next((len(each) for each in arguments if isinstance(each, pa.Array)), None)


def is_null(value: Datum) -> bool:
    """Tell whether an argument is a literal NULL."""
    return isinstance(value, pa.Scalar) and not value.is_valid


def nulls_like(arguments: Sequence[Datum], kind: pa.DataType) -> Datum:
    """Return NULL, for each row if an argument is an array."""
    rows = count_of(arguments)
    return pa.scalar(None, kind) if rows is None else pa.nulls(rows, kind)


def as_arrays(arguments: Sequence[Datum]) -> list[pa.Array]:
    """Return arguments as arrays of one length."""
    rows = count_of(arguments)
    return [
        each if isinstance(each, pa.Array) else repeated(each, 1 if rows is None else rows)
        for each in arguments
    ]


def repeated(value: pa.Scalar, rows: int) -> pa.Array:
    """Return a value for each row; Arrow has no lists for no rows."""
    return pa.repeat(value, rows) if rows else pa.array([], value.type)


def check_types(arguments: Sequence[Datum], takes: Sequence[Callable[[pa.DataType], bool]]) -> None:
    """Raise ArrowInvalid unless the arguments have types that are taken; NULL has any."""
    last = len(takes) - 1
    for number, each in enumerate(arguments):
        if last >= 0 and each.type != pa.null() and not takes[min(number, last)](each.type):
            message = f"argument {number + 1} cannot be {each.type}"
            raise pa.ArrowInvalid(message)


def check_bytes(count: int) -> None:
    """Raise ArrowInvalid if so many bytes are too much for what one batch becomes."""
    if count > MOST_BYTES:
        message = f"the result would take {count} bytes, more than {MOST_BYTES}"
        raise pa.ArrowInvalid(message)


def first_type(*kinds: pa.DataType) -> pa.DataType:
    """Return the type of the first argument, a string if that is NULL."""
    return pa.string() if kinds[0] == pa.null() else kinds[0]


def size_type(*kinds: pa.DataType) -> pa.DataType:
    """Return the type that counts characters or bytes of the first argument."""
    return pa.int64() if kinds[0] in (pa.large_string(), pa.large_binary()) else pa.int32()
