"""The rows of an INSERT as a table takes them: columns by position or by name, values in the table's types.

Types are those of Spark's store assignment: numbers to numbers, everything to text, dates to times.  Literals of text
in VALUES are read as whatever the column is, so ``'2026-01-31 12:00:00'`` may be a timestamp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import SchemaMismatchError
from pennon.spark.names import find_name, quoted
from pennon.spark.session import is_case_sensitive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DATETIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)


def named_rows(
    rows: DataFrame, table: st.StructType, columns: Sequence[str] | None, *, evolves: bool = False
) -> DataFrame:
    """Return rows whose columns have the names of the table's columns, by position.

    ``columns``: those that are given; None: all.  Raises SchemaMismatchError for another number of columns, or for
    a name that the table does not have.
    """
    cases = is_case_sensitive(rows.sparkSession)
    names = []
    for given in table.names if columns is None else columns:
        found = find_name(given, table.names, case_sensitive=cases)
        if found is None and not evolves:
            message = f"the table has no column {given!r}; it has {', '.join(table.names)}"
            raise SchemaMismatchError(message)
        names.append(given if found is None else found)
    if len({*names}) < len(names):
        message = f"a column is named twice: {', '.join(names)}"
        raise SchemaMismatchError(message)
    given_columns = rows.columns
    if len(given_columns) != len(names):
        known = ", ".join(names)
        message = f"{len(given_columns)} values are given for {len(names)} columns ({known}); name the columns, or use BY NAME"
        raise SchemaMismatchError(message)
    return rows.toDF(*names)


def fitted_rows(rows: DataFrame, table: st.StructType, *, are_literals: bool) -> DataFrame:
    """Return rows whose values have the types of the table's columns of their names, where Spark assigns them so."""
    spark = rows.sparkSession
    cases = is_case_sensitive(spark)
    is_ansi = str(spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"
    shown = []
    changes = False
    for field in rows.schema.fields:
        name = find_name(field.name, table.names, case_sensitive=cases)
        column = sf.col(quoted(field.name))
        wanted = None if name is None else table[name].dataType
        if wanted is not None and _casts(
            field.dataType, wanted, is_ansi=is_ansi, from_text=are_literals
        ):
            column = column.cast(wanted).alias(field.name)
            changes = True
        shown.append(column)
    return rows.select(*shown) if changes else rows


def _casts(given: st.DataType, wanted: st.DataType, *, is_ansi: bool, from_text: bool) -> bool:
    """Return whether values of one type are cast to another one; what is not is left to the writer."""
    if given == wanted:
        return False
    if isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        return _may_become(
            given.elementType, wanted.elementType, is_ansi=is_ansi, from_text=from_text
        )
    if isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        pairs = [(given.keyType, wanted.keyType), (given.valueType, wanted.valueType)]
        return all(_may_become(*pair, is_ansi=is_ansi, from_text=from_text) for pair in pairs)
    if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
        if len(given.fields) != len(wanted.fields):
            return False
        kinds = [(a.dataType, b.dataType) for a, b in zip(given.fields, wanted.fields, strict=True)]
        return all(_may_become(*pair, is_ansi=is_ansi, from_text=from_text) for pair in kinds)
    if isinstance(given, st.NullType):
        return True
    if isinstance(given, st.NumericType) and isinstance(wanted, st.NumericType):
        return is_ansi or isinstance(wanted, (st.DoubleType, st.FloatType))
    if isinstance(wanted, st.StringType):
        return isinstance(given, st.AtomicType) and not isinstance(given, st.BinaryType)
    if isinstance(given, _DATETIMES) and isinstance(wanted, _DATETIMES):
        return True
    return (
        from_text
        and is_ansi
        and isinstance(given, st.StringType)
        and isinstance(wanted, st.AtomicType)
    )


def _may_become(given: st.DataType, wanted: st.DataType, *, is_ansi: bool, from_text: bool) -> bool:
    return given == wanted or _casts(given, wanted, is_ansi=is_ansi, from_text=from_text)
