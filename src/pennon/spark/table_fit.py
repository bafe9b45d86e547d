"""The columns of a DataFrame against those of a table that is there: what they are written as.

A table keeps its types: a DataFrame's column takes the type of the table's column of its name, and
`pennon.spark.arrow_convert` checks each value.  ``mergeSchema`` lets the table grow: by columns and fields of
structs that it lacks, and by numbers that are wider in the DataFrame.  Nothing is ever made narrower, and
nothing goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pat
from pyspark.sql import types as st

from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.schema.maps import map_entries
from pennon.schema.version import FileVersion
from pennon.spark.names import find_name
from pennon.spark.types import arrow_schema, is_assignable, lance_schema, spark_type

_INTEGERS: Final = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_FLOATS: Final = (st.FloatType, st.DoubleType)


@dataclass(frozen=True, slots=True)
class FitRule:
    """How columns may differ: in the case of their names, and in what makes the table grow.

    ``version`` is that of the data files, ``fixed_size_lists`` are those of new columns.
    """

    version: FileVersion
    merges: bool = False
    case_sensitive: bool = False
    fixed_size_lists: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """What a DataFrame is written as.

    ``rows`` has its columns in its order, as the table calls and stores them; ``table`` all columns of the
    table as they are then, old ones first.
    """

    rows: pa.Schema
    table: pa.Schema


def fit_columns(table: pa.Schema, schema: st.StructType, rule: FitRule) -> Fit:
    """Fit a DataFrame's columns to a table; columns that it lacks read as NULL.

    Raises SchemaMismatchError for a column that the table lacks, or whose values it cannot take.
    """
    names = [_named(table, field.name, rule) for field in schema.fields]
    known = [name for name in names if name is not None]
    missing = [f.name for f in table if not f.nullable and f.name not in known]
    if missing:
        message = f"the DataFrame lacks {', '.join(missing)}, which the table requires"
        raise SchemaMismatchError(message)
    merged = {field.name: field for field in table}
    rows = []
    for given, name in zip(schema.fields, names, strict=True):
        fitted = (
            _new_field(given, rule)
            if name is None
            else _fitted(merged[name], given.dataType, name, rule)
        )
        merged[fitted.name] = fitted
        rows.append(fitted)
    return Fit(pa.schema(rows, table.metadata), pa.schema(merged.values(), table.metadata))


def _named(table: pa.Schema, name: str, rule: FitRule) -> str | None:
    """Return the table's column that a column is written to; None: it is new, and may be."""
    found = find_name(name, table.names, case_sensitive=rule.case_sensitive)
    if found is None and not rule.merges:
        message = (
            f"the table has no column {name!r}; it has {', '.join(table.names)} "
            "(option mergeSchema adds columns)"
        )
        raise SchemaMismatchError(message)
    return found


def _new_field(given: st.StructField, rule: FitRule) -> pa.Field:
    sizes = {
        name: size
        for name, size in (rule.fixed_size_lists or {}).items()
        if name.split(".")[0] == given.name
    }
    return lance_schema(st.StructType([given]), sizes, rule.version).field(0)


def _fitted(field: pa.Field, given: st.DataType, path: str, rule: FitRule) -> pa.Field:
    """Return the table's field as it is after the write; the same one where it does not grow."""
    wanted = spark_type(field, path)
    if isinstance(field.type, pa.BaseExtensionType):
        return _checked(field, given, wanted, path)
    if isinstance(wanted, st.StructType) and isinstance(given, st.StructType):
        return _fitted_struct(field, given, path, rule)
    if isinstance(wanted, st.ArrayType) and isinstance(given, st.ArrayType):
        item = field.type.value_field
        fitted = _fitted(item, given.elementType, f"{path}.{item.name}", rule)
        return field if fitted is item else field.with_type(_list_of(field.type, fitted))
    entries = map_entries(field)
    if entries is not None and isinstance(given, st.MapType):
        inside = FitRule(rule.version, case_sensitive=rule.case_sensitive)
        _fitted(entries[0], given.keyType, f"{path}.key", inside)
        _fitted(entries[1], given.valueType, f"{path}.value", inside)
        return field
    is_number = not isinstance(wanted, st.DecimalType) or pat.is_decimal(field.type)
    if rule.merges and is_number and _is_wider(given, wanted):
        arrow = arrow_schema(st.StructType([st.StructField(field.name, given)]))
        return field.with_type(arrow.field(0).type)
    return _checked(field, given, wanted, path)


def _checked(field: pa.Field, given: st.DataType, wanted: st.DataType, path: str) -> pa.Field:
    if not is_assignable(given, wanted):
        message = (
            f"column {path!r} is {wanted.simpleString()} in the table "
            f"and {given.simpleString()} in the DataFrame; cast it first"
        )
        raise SchemaMismatchError(message)
    return field


def _fitted_struct(field: pa.Field, given: st.StructType, path: str, rule: FitRule) -> pa.Field:
    parts = {part.name: part for part in _parts(field.type)}
    before, known = dict(parts), set()
    for each in given.fields:
        name = find_name(each.name, before, case_sensitive=rule.case_sensitive)
        inner = f"{path}.{each.name}"
        if name is not None:
            parts[name] = _fitted(before[name], each.dataType, inner, rule)
            known.add(name)
        elif rule.merges:
            parts[each.name] = _new_field(each, FitRule(rule.version))
        else:
            message = (
                f"column {path!r} has no field {each.name!r}; it has {', '.join(before)} "
                "(option mergeSchema adds fields)"
            )
            raise SchemaMismatchError(message)
    missing = [name for name, part in before.items() if not part.nullable and name not in known]
    if missing:
        message = (
            f"column {path!r} of the DataFrame lacks {', '.join(missing)}, which the table requires"
        )
        raise SchemaMismatchError(message)
    is_same = len(parts) == len(before) and all(parts[name] is before[name] for name in before)
    return field if is_same else field.with_type(pa.struct(list(parts.values())))


def _parts(struct: pa.DataType) -> Iterator[pa.Field]:
    return (struct.field(i) for i in range(struct.num_fields))


def _list_of(kind: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the same kind of list of other items."""
    if pat.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.large_list(item) if pat.is_large_list(kind) else pa.list_(item)


def _is_wider(given: st.DataType, wanted: st.DataType) -> bool:
    """Return whether numbers of one type are all of another, and more."""
    for kinds in (_INTEGERS, _FLOATS):
        if isinstance(given, kinds) and isinstance(wanted, kinds):
            return _rank(given, kinds) > _rank(wanted, kinds)
    if isinstance(given, st.DecimalType) and isinstance(wanted, st.DecimalType):
        whole = given.precision - given.scale, wanted.precision - wanted.scale
        grows = whole[0] >= whole[1] and given.scale >= wanted.scale
        return grows and given != wanted
    return False


def _rank(kind: st.DataType, kinds: Sequence[type[st.DataType]]) -> int:
    return next(at for at, each in enumerate(kinds) if isinstance(kind, each))


def check_sizes(sizes: Mapping[str, int], fit: Fit, before: pa.Schema) -> None:
    """Raise ArgumentError for dimensions of columns that the table has otherwise.

    They count for new columns; what is there keeps its type.
    """
    for name, size in sizes.items():
        top = name.split(".")[0]
        if top in before.names and "." not in name:
            kind = fit.table.field(top).type
            if not (pat.is_fixed_size_list(kind) and kind.list_size == size):
                message = (
                    f"fixed_size_list asks for {name}:{size}, but the table's column is {kind}; an "
                    "overwrite keeps the table's types unless overwriteSchema is true"
                )
                raise ArgumentError(message)
