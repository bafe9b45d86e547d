"""The values of rows that change, on their way from Spark to the tasks that write them.

::

    address   clause   __pennon_0:v: int   __pennon_1:v: double
    7         0        3                   NULL                   clause 0 gives `v` an int
    9         1        NULL                0.5                    clause 1 gives `v` a double

Values travel in the types that Spark has for them: one type for all clauses would round some of them before
they are checked.  Where all clauses give one type the column is `v`.  The task gives values the column's type,
structs by the names of their fields, and checks each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.encoding.selection import take
from pennon.spark.arrow_convert import convert_column
from pennon.spark.frames.scan import ADDRESS
from pennon.spark.source.table_fit import FitRule, fit_value
from pennon.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CLAUSE: Final = "__pennon_clause"
_OF_CLAUSES: Final = re.compile(r"__pennon_(\d+(?:_\d+)*):(.*)", re.DOTALL)
"""The name of a column of values that only some clauses give, by their numbers."""
_NULLABLE: Final = re.compile(r'"(?:nullable|containsNull|valueContainsNull)":(?:true|false)')
"""The parts of Spark's JSON of a type that do not make it another type."""
_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)


def choose_values(
    rows: DataFrame, table: pa.Schema, values: Sequence[Mapping[str, Column]], rule: FitRule
) -> DataFrame:
    """Return address, clause, and for each column the values that clauses give it.

    ``values``: those of each clause, by the table's columns.  Raises SchemaMismatchError for values that a
    column cannot take.
    """
    given = [(number, name, each[name]) for number, each in enumerate(values) for name in each]
    marked = [column.alias(f"c{at}") for at, (_, _, column) in enumerate(given)]
    types = [each.dataType for each in rows.select(*marked).schema.fields] if marked else []
    kinds: dict[str, dict[str, list[tuple[int, Column]]]] = {}
    for (number, name, column), kind in zip(given, types, strict=True):
        value, fits = _fitted(column, kind, table.field(name), rule)
        same = kinds.setdefault(name, {}).setdefault(_NULLABLE.sub("", fits.json()), [])
        same.append((number, value))
    chosen = []
    for name, by_kind in kinds.items():
        for mine in by_kind.values():
            numbers = "_".join(str(number) for number, _ in mine)
            shown = name if len(by_kind) == 1 else f"__pennon_{numbers}:{name}"
            chosen.append(_by_clause(mine).alias(shown))
    return rows.select(sf.col(ADDRESS), sf.col(CLAUSE), *chosen)


def _by_clause(values: Sequence[tuple[int, Column]]) -> Column:
    """Return the value of a row's clause."""
    (number, first), *others = values
    made = sf.when(sf.col(CLAUSE) == number, first)
    for number, value in others:
        made = made.when(sf.col(CLAUSE) == number, value)
    return made


def _fitted(
    column: Column, given: st.DataType, field: pa.Field, rule: FitRule
) -> tuple[Column, st.DataType]:
    """Return a value that a column can take, and its type; the task that writes it checks it."""
    wanted = spark_type(field, field.name)
    if isinstance(given, st.NullType):
        return column.cast(wanted), wanted
    is_time = isinstance(given, _TIMES) and isinstance(wanted, _TIMES)
    if is_time and type(given) is not type(wanted):
        return _as_time(column, given, wanted, field.name), wanted
    fit_value(field, given, rule)
    return column, given


def _as_time(column: Column, given: st.DataType, wanted: st.DataType, name: str) -> Column:
    """Return a date or a time as another kind of it, in the session's zone; a date has no time to lose."""
    made = column.cast(wanted)
    if not isinstance(wanted, st.DateType):
        return made
    words = f"column {name!r} is date in the table, and would lose the time of day of "
    refused = sf.raise_error(
        sf.concat(sf.lit(words), column.cast("string"), sf.lit("; cast it to date"))
    )
    is_lost = made.cast(given) != column
    return sf.when(is_lost, refused.cast("date")).otherwise(made)


# --- in the task that writes them -----------------------------------------------------------------


def table_values(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """Return the values of the columns of ``schema``, in its types, of a batch that `choose_values` made.

    Raises ArgumentError, with the name of the column or field, for a value that does not fit.
    """
    parts: dict[str, list[tuple[str, pa.Array]]] = {}
    for column in batch.schema.names:
        found = _OF_CLAUSES.fullmatch(column)
        if found is not None and found[2] in schema.names:
            values = convert_column(batch.column(column), schema.field(found[2]))
            parts.setdefault(found[2], []).append((found[1], values))
    return [
        _of_clauses(batch, parts[field.name])
        if field.name in parts
        else convert_column(batch.column(field.name), field)
        for field in schema
    ]


def _of_clauses(batch: pa.RecordBatch, parts: Sequence[tuple[str, pa.Array]]) -> pa.Array:
    """Return for each row the value of its clause."""
    clauses = batch.column(CLAUSE).to_numpy()
    picks = np.arange(len(clauses))
    for at, (numbers, _) in enumerate(parts):
        picks += len(clauses) * at * np.isin(clauses, [int(each) for each in numbers.split("_")])
    both = pa.concat_arrays([_plain(values) for _, values in parts])
    buffer = pa.py_buffer(picks.astype(np.int64))
    return take(both, pa.Array.from_buffers(pa.int64(), len(picks), [None, buffer]))


def _plain(array: pa.Array[Any]) -> pa.Array[Any]:
    """Return values without a dictionary: each part has its own."""
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
