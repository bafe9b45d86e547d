"""Literals: numbers, bytes, lists and spans of time as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Final

import pyarrow as pa
from sqlglot import exp

from pennon.encoding.made_arrays import fixed_array
from pennon.errors import ArgumentError
from pennon.expr.intervals import nanoseconds_of
from pennon.expr.tree import Expression, Literal

_LARGEST: Final = 1 << 63


def number(text: str) -> Literal:
    """Return a number: an integer if it is one of 64 bits, else a float.

    Raises ArgumentError, as all of these do, if it is none.
    """
    try:
        return Literal(_integer_or_float(text.replace("_", "")))
    except ValueError as error:
        message = f"{text[:40]} is no number"
        raise ArgumentError(message) from error


def _integer_or_float(text: str) -> pa.Scalar:
    longest = 20  # digits of 64 bits, and a sign
    if len(text) <= longest and text.removeprefix("-").isdigit():
        value = int(text)
        if -_LARGEST <= value < _LARGEST:
            return int64_scalar(value)
        if 0 <= value < 2 * _LARGEST:
            return pa.scalar(value, pa.uint64())
    return pa.scalar(float(text), pa.float64())


def int64_scalar(value: int) -> pa.Scalar:
    """Return an integer of 64 bits; `pyarrow.scalar` lets go of the interpreter's lock, and of its time."""
    return fixed_array(pa.int64(), 1, 64, None, pa.py_buffer(pack("q", value)))[0]


def hexadecimal(node: exp.HexString) -> Literal:
    """Return the bytes of ``x'00ff'``."""
    digits = str(node.this)
    try:
        return Literal(pa.scalar(bytes.fromhex("0" * (len(digits) % 2) + digits)))
    except ValueError as error:
        message = f"{node.sql()} is not hexadecimal"
        raise ArgumentError(message) from error


def list_of(what: str, items: Sequence[Expression]) -> Literal:
    """Return a list of literals."""
    values = [each.value.as_py() for each in items if isinstance(each, Literal)]
    if len(values) != len(items):
        message = f"{what}: a list has literals only"
        raise ArgumentError(message)
    try:
        return Literal(pa.scalar(values, pa.list_(pa.array(values).type)))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        message = f"{what}: the items are of several types"
        raise ArgumentError(message) from error


def interval(node: exp.Interval) -> Literal:
    """Return a span of time."""
    count = node.this.name if isinstance(node.this, exp.Literal) else ""
    try:
        months, nanos = nanoseconds_of(f"{count} {node.args.get('unit') or ''}")
    except pa.ArrowInvalid as error:
        message = f"{node.sql()} is no interval: {error}"
        raise ArgumentError(message) from error
    if months:
        message = f"{node.sql()}: intervals of months and years are not supported"
        raise ArgumentError(message)
    return Literal(pa.scalar(nanos, pa.duration("ns")))
