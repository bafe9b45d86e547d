"""A DataFrame of the rows in which two versions differ, row by row of the same keys.

Only fragments that differ are read: rows in files that both versions have, with the same deletions, are the same::

    old rows   key, struct of the others   ┐  full outer join by key
    new rows   key, struct of the others   ┘  those without a partner, and those whose structs differ
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.scan.changes.feed import net_fragments
from pennon.scan.snapshot import Snapshot
from pennon.spark.frames.scan import frame_of
from pennon.spark.names import quoted
from pennon.spark.pyspark_classes import VariantType
from pennon.spark.source.options import ReadOptions
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DIFFERENCE: Final = "_difference"
CHANGED: Final = "_changed_columns"
BEFORE, AFTER = "before", "after"
_ROW: Final = "__pennon_row"
_THERE: Final = "__pennon_there"


def difference_frame(
    spark: SparkSession, old: Snapshot, new: Snapshot, keys: Sequence[str]
) -> DataFrame:
    """Return the rows that differ: their keys, how they differ, and each as it was and as it is.

    Raises ArgumentError if a version lacks a key column.
    """
    sides = [
        _side(spark, *pair, keys) for pair in zip((old, new), _fragments(old, new), strict=True)
    ]
    before, after = sides[0].alias("o"), sides[1].alias("n")
    same = [sf.col(f"o.{quoted(name)}").eqNullSafe(sf.col(f"n.{quoted(name)}")) for name in keys]
    joined = before.join(after, reduce(and_, same), "full_outer")
    is_old, is_new = (sf.col(f"{side}.{_THERE}").isNotNull() for side in "on")
    known = set(new.manifest.schema.names) - set(keys)
    both = [name for name in old.manifest.schema.names if name in known]
    changed = sf.array_compact(
        sf.array(*[sf.when(~_equal(before, after, name), sf.lit(name)) for name in both])
        if both
        else sf.array().cast("array<string>")
    )
    kind = sf.when(~is_old, "added").when(~is_new, "removed").otherwise("changed")
    rows = joined.select(
        *(
            sf.coalesce(sf.col(f"o.{quoted(name)}"), sf.col(f"n.{quoted(name)}")).alias(name)
            for name in keys
        ),
        kind.alias(DIFFERENCE),
        sf.when(is_old & is_new, changed).alias(CHANGED),
        sf.col(f"o.{_ROW}").alias(BEFORE),
        sf.col(f"n.{_ROW}").alias(AFTER),
    )
    return rows.where((sf.col(DIFFERENCE) != "changed") | (sf.size(CHANGED) > 0))


def _side(
    spark: SparkSession, snapshot: Snapshot, fragments: Sequence[Fragment], keys: Sequence[str]
) -> DataFrame:
    """Return the rows of some fragments of a version: the keys, and a struct of the other columns."""
    names = snapshot.manifest.schema.names
    missing = [name for name in keys if name not in names]
    if missing:
        message = f"version {snapshot.manifest.version} has no key column {missing[0]!r}; it has {', '.join(names)}"
        raise ArgumentError(message)
    some = snapshot.at(replace(snapshot.manifest, fragments=tuple(fragments)))
    rows = frame_of(spark, some, ReadOptions(snapshot.store.uri))
    others = [sf.col(quoted(name)) for name in names if name not in keys]
    row = sf.struct(*others) if others else sf.struct(sf.lit(1).alias(_THERE))
    return rows.select(
        *(sf.col(quoted(name)) for name in keys),
        row.alias(_ROW),
        sf.lit(1).alias(_THERE),
    )


def _fragments(old: Snapshot, new: Snapshot) -> tuple[list[Fragment], list[Fragment]]:
    """Return the fragments of each version that the other one does not have as they are."""
    changes = list(net_fragments(old.manifest, new.manifest))
    return (
        [each.before for each in changes if each.before is not None],
        [each.after for each in changes if each.after is not None],
    )


def _equal(before: DataFrame, after: DataFrame, name: str) -> Column:
    """Return whether a column has the same value on both sides; NULL is equal to NULL, and maps to maps."""
    sides = [sf.col(f"{side}.{_ROW}").getField(name) for side in "on"]
    kinds = [frame.schema[_ROW].dataType[name].dataType for frame in (before, after)]  # type: ignore[index]
    if kinds[0] != kinds[1] or any(map(_has_map, kinds)):
        sides = [sf.to_json(sf.struct(side.alias("v"))) for side in sides]
    return sides[0].eqNullSafe(sides[1])


def _has_map(kind: st.DataType) -> bool:
    """Return whether a type is one that Spark does not compare: a map, or one with a map in it."""
    if isinstance(kind, st.StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    if isinstance(kind, st.ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, (st.MapType, VariantType))
