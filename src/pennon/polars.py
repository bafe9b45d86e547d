"""Tables as lazy frames of Polars, which ask a table for the columns, rows and number of rows that a query needs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pennon.core.extras import not_installed
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset
from pennon.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["scan_lance"]

_ROWS: Final = 64_000

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "Eq": lambda left, right: left == right,
    "NotEq": lambda left, right: left != right,
    "Lt": lambda left, right: left < right,
    "LtEq": lambda left, right: left <= right,
    "Gt": lambda left, right: left > right,
    "GtEq": lambda left, right: left >= right,
}
_LOGIC: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "And": lambda left, right: left & right,
    "Or": lambda left, right: left | right,
}


def scan_lance(
    table: LanceDataset | str | os.PathLike[str],
    *,
    filter: str | None = None,
    nearest: Mapping[str, Any] | None = None,
    full_text_query: str | Mapping[str, Any] | None = None,
    prefilter: bool = False,
    with_row_id: bool = False,
    version: int | str | None = None,
    storage_options: dict[str, str] | None = None,
) -> pl.LazyFrame:
    """Return a LazyFrame of a table, or of what a search finds in it; nothing is read before ``collect``.

    A query reads the columns that it uses, and stops at its ``head``.  Its filters become filters of the table, which use
    indices and skip pages, as far as they are comparisons, ``is_null``, ``is_in``, ``is_between``, ``starts_with``,
    ``ends_with`` or ``contains(literal=True)`` of a column with a value, joined by and, or, not; Polars does the rest.

    ``filter`` (SQL), ``nearest``, ``full_text_query``, ``prefilter`` and ``with_row_id`` are those of
    `LanceDataset.scanner`: with ``prefilter`` a search finds ``k`` of the rows that match ``filter``.  The query's
    own filters and limits apply to what a search found.  ``version`` and ``storage_options`` open the table, if it
    is given by a path or URI.

    Raises ModuleNotFoundError without Polars, NotFoundError for no such table, ArgumentError for
    options that do not fit the table.

    >>> import polars as pl
    >>> from pennon.polars import scan_lance
    >>> _ = pennon.write_dataset(pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"]}), uri)
    >>> scan_lance(uri).filter(pl.col("id") > 1).select("word").collect()["word"].to_list()
    ['b', 'c']
    """
    polars = _polars()
    if not isinstance(table, LanceDataset):
        table = dataset(table, version, storage_options=storage_options)
    asked: dict[str, Any] = {
        "filter": filter,
        "nearest": None if nearest is None else dict(nearest),
        "full_text_query": full_text_query,
        "prefilter": prefilter,
        "with_row_id": with_row_id,
    }
    schema = table.scanner(**asked).projected_schema
    empty = polars.from_arrow(schema.empty_table())
    source = partial(_frames, table, asked)
    frame: pl.LazyFrame = import_module("polars.io.plugins").register_io_source(
        source, schema=empty.schema, is_pure=True
    )
    return frame


def _polars() -> Any:
    try:
        return import_module("polars")
    except ImportError:
        raise not_installed("polars", "scan_lance") from None


def _frames(
    table: LanceDataset,
    asked: Mapping[str, Any],
    with_columns: list[str] | None,
    predicate: pl.Expr | None,
    n_rows: int | None,
    batch_size: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield what Polars asks for; the names of the parameters are Polars'."""
    polars = _polars()
    options = dict(asked, batch_size=min(batch_size or _ROWS, _ROWS))
    if with_columns is not None:
        used = with_columns + (predicate.meta.root_names() if predicate is not None else [])
        options["columns"] = [name for name in dict.fromkeys(used) if name != "_rowid"]
    is_search = asked["nearest"] is not None or asked["full_text_query"] is not None
    if predicate is None and not is_search:
        options["limit"] = n_rows
    scanner = _scanner(table, options, None if is_search else predicate)
    left = math.inf if n_rows is None else n_rows
    for batch in scanner.to_batches():
        frame = polars.from_arrow(pa.Table.from_batches([batch]))
        if predicate is not None:
            frame = frame.filter(predicate)
        if with_columns is not None:
            frame = frame.select(with_columns)
        yield frame if frame.height <= left else frame.head(int(left))
        left -= frame.height
        if left <= 0:
            return


def _scanner(table: LanceDataset, options: dict[str, Any], predicate: pl.Expr | None) -> Any:
    """Return a scan of at least the rows that match; the table may not know a filter that Polars does."""
    pushed = None if predicate is None else _implied(predicate)
    if pushed is None:
        return table.scanner(**options)
    try:
        if options["filter"] is not None:
            return table.filter(options["filter"]).scanner(**{**options, "filter": pushed})
        return table.scanner(**{**options, "filter": pushed})
    except (ArgumentError, UnsupportedError, TypeError, pa.ArrowException):
        return table.scanner(**options)


def _implied(predicate: pl.Expr) -> pc.Expression | None:
    """Return a filter that all matching rows match, or None: those operands of ``and`` that can be said."""
    said = _said(predicate)
    if isinstance(said, Mapping) and "BinaryExpr" in said and said["BinaryExpr"]["op"] == "And":
        parts = [part for part in map(_implied, _operands(predicate)) if part is not None]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else parts[0] & parts[1]
    try:
        return _translated(predicate)
    except (LookupError, TypeError, ValueError, pa.ArrowException):
        return None


def _said(expression: pl.Expr) -> Any:
    """Return what Polars says of an expression in JSON: an object of one key, its kind."""
    text = expression.meta.serialize(format="json")
    return json.loads(text)


def _operands(expression: pl.Expr) -> list[pl.Expr]:
    """Return the operands from left to right."""
    return expression.meta.pop()[::-1]


def _translated(expression: pl.Expr) -> pc.Expression:
    """Return the same filter of pyarrow; raises LookupError, TypeError or ValueError for one that has none."""
    said = _said(expression)
    ((kind, details),) = said.items()
    if kind == "Column":
        return pc.field(details)
    operands = _operands(expression)
    if kind == "BinaryExpr":
        left, right = operands
        if details["op"] in _LOGIC:
            both: pc.Expression = _LOGIC[details["op"]](_translated(left), _translated(right))
            return both
        compared: pc.Expression = _COMPARISONS[details["op"]](_column(left), _value(right))
        return compared
    if kind != "Function":
        raise LookupError(kind)
    ((family, function),) = details["function"].items()
    if family == "Boolean":
        return _boolean(function, operands)
    return _text_test(function, operands)


def _boolean(function: Any, operands: list[pl.Expr]) -> pc.Expression:
    if function == "Not":
        return ~_translated(operands[0])
    column = _column(operands[0])
    if function == "IsNull":
        return column.is_null()
    if function == "IsNotNull":
        return column.is_valid()
    ((name, details),) = function.items()
    if name == "IsBetween" and details["closed"] == "Both":
        return (column >= _value(operands[1])) & (column <= _value(operands[2]))
    if name == "IsIn":
        values = _value(operands[1]).values
        if values.null_count or pa.types.is_floating(values.type):
            raise ValueError(name)
        return column.isin(values)
    raise LookupError(name)


def _text_test(function: Any, operands: list[pl.Expr]) -> pc.Expression:
    column = _column(operands[0])
    text = _value(operands[1]).as_py()
    tests: dict[str, Callable[..., Any]] = {"StartsWith": pc.starts_with, "EndsWith": pc.ends_with}
    if isinstance(function, str):
        found: pc.Expression = tests[function](column, text)
        return found
    if not function["Contains"]["literal"]:
        raise LookupError(function)
    return pc.match_substring(column, text)


def _column(expression: pl.Expr) -> pc.Expression:
    return pc.field(_said(expression)["Column"])


def _value(expression: pl.Expr) -> Any:
    """Return the scalar of a literal; raises ValueError for NULL and NaN, whose comparisons differ."""
    if "Literal" not in _said(expression):
        raise LookupError(expression)
    scalar = _polars().select(expression).to_series().to_arrow()[0]
    value = scalar.as_py()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError(expression)
    return scalar
