"""Row masks: a scan limited to the rows that a caller lists by their ids, or to all others.

pylance takes both lists as bytes, so that another extension module can make them: address sets of ``_rowid``, as Lance
serializes them (`pennon.dataset.serialize_row_addrs` writes one).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.compat.arguments import row_ids
from pennon.errors import ArgumentError, FormatError, TooLargeError
from pennon.expr.tree import Call, Column, Expression, Literal, is_among
from pennon.index.row_set import RowSet
from pennon.index.row_sets_wire import parse_address_sets, serialize_address_set
from pennon.scan.predicate import SqlPredicate
from pennon.scan.projection import MetaColumn

_FEW_RANGES: Final = 16
_MOST_ROWS: Final = 1 << 27
_ROW_ID: Final = Column((MetaColumn.ROW_ID.value,), pa.uint64())


def row_mask(allowlist: bytes | None, blocklist: bytes | None) -> SqlPredicate | None:
    """Return the condition that a row is in one set, and not in another; None where neither is given.

    Raises ArgumentError for bytes that are no such set, TooLargeError for one of more rows than memory should hold.
    """
    parts: list[tuple[str, Expression]] = []
    if allowlist is not None:
        rows = _rows("row_addr_allowlist", allowlist)
        parts.append((f"row in {_text(rows)}", _among(rows)))
    if blocklist is not None:
        rows = _rows("row_addr_blocklist", blocklist)
        parts.append((f"row not in {_text(rows)}", Call("NOT", (_among(rows),), pa.bool_())))
    if not parts:
        return None
    condition = parts[0][1]
    for _, other in parts[1:]:
        condition = Call("AND", (condition, other), pa.bool_())
    return SqlPredicate(" AND ".join(text for text, _ in parts), condition)


def _rows(name: str, data: object) -> RowSet:
    if not isinstance(data, bytes):
        message = f"{name} is a serialized set of row ids (serialize_row_addrs makes one), got {type(data).__name__}"
        raise TypeError(message)
    try:
        return parse_address_sets([data])
    except FormatError as error:
        message = (
            f"{name} is not a serialized set of row ids (serialize_row_addrs makes one): {error}"
        )
        raise ArgumentError(message) from error


def _count(rows: RowSet) -> int:
    return int((rows.lasts - rows.starts).sum()) + len(rows.starts)


def _text(rows: RowSet) -> str:
    return f"a list of {_count(rows)} rows"


def _among(rows: RowSet) -> Expression:
    """Return whether a row id is in a set: by its ranges where they are few, else by its numbers."""
    if len(rows.starts) <= _FEW_RANGES:
        condition: Expression = Literal(pa.scalar(value=False))
        for number, each in enumerate(_ranges(rows)):
            condition = Call("OR", (condition, each), pa.bool_()) if number else each
        return condition
    if _count(rows) > _MOST_ROWS:
        message = f"a row mask lists {_count(rows)} rows in {len(rows.starts)} ranges; at most {_MOST_ROWS} are taken"
        raise TooLargeError(message)
    return is_among(_ROW_ID, pa.array(rows.numbers(), pa.uint64()))


def _ranges(rows: RowSet) -> Iterator[Expression]:
    for first, last in zip(rows.starts.tolist(), rows.lasts.tolist(), strict=True):
        bounds = [("=", first)] if first == last else [(">=", first), ("<=", last)]
        sides = [
            Call(name, (_ROW_ID, Literal(pa.scalar(np.uint64(value), pa.uint64()))), pa.bool_())
            for name, value in bounds
        ]
        yield sides[0] if len(sides) == 1 else Call("AND", tuple(sides), pa.bool_())


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Return row ids as the options ``row_addr_allowlist`` and ``row_addr_blocklist`` of a scan take them.

    Raises OverflowError for a number below 0.

    >>> from pennon.dataset import serialize_row_addrs
    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.scanner(row_addr_allowlist=serialize_row_addrs([0, 2])).to_table()["id"].to_pylist()
    [1, 3]
    """
    return serialize_address_set(np.unique(row_ids(addrs)))
