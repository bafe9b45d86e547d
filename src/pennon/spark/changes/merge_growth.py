"""The columns that a merge brings: those of its source that clauses set, by name, at any depth.

The table grows as by an append with ``mergeSchema`` (`pennon.spark.source.evolution`), and in the same version as the rows
change.  Columns that are wider then are written anew first, as files that only this version names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as st

from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.assignments import possible_paths
from pennon.spark.names import check_new_names, find_name
from pennon.spark.run_tasks import run_tasks
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.evolution import Evolution, plan_evolution
from pennon.spark.source.table_fit import FitRule, grown_columns
from pennon.spark.types import SYSTEM_COLUMNS
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot
    from pennon.spark.changes.merge_clauses import Merge


def plan_growth(snapshot: Snapshot, merge: Merge) -> Evolution | None:
    """Plan what gives a table the columns that a merge sets and that it lacks, or has narrower; None: nothing.

    Raises InvalidSchemaError for names, UnsupportedError for what the file version cannot hold.
    """
    case_sensitive = is_case_sensitive(merge.source.sparkSession)
    rule = FitRule(
        storage_version(snapshot.manifest), merges=True, case_sensitive=case_sensitive, assigns=True
    )
    table = schema_to_arrow(snapshot.manifest.schema)
    for field in _fields_set(merge, table.names, case_sensitive=case_sensitive):
        schema = st.StructType([field])
        check_new_names(schema, case_sensitive=case_sensitive)
        table = grown_columns(table, schema, rule)
    return plan_evolution(snapshot, table)


def grown_snapshot(evolution: Evolution) -> Snapshot:
    """Return the version with the columns that it gets; nothing is written, so values of wider ones are missing."""
    snapshot = evolution.snapshot
    return snapshot.at(replace(snapshot.manifest, schema=evolution.schema))


def widened_snapshot(spark: SparkSession, evolution: Evolution) -> Snapshot:
    """Return the version with its new columns; executors write those that become wider."""
    grown = grown_snapshot(evolution)
    task = evolution.task
    if task is None:
        return grown
    fragments = tuple(run_tasks(spark, task, task.count))
    return grown.at(replace(grown.manifest, fragments=fragments))


def _fields_set(
    merge: Merge, names: list[str], *, case_sensitive: bool
) -> Iterator[st.StructField]:
    """Yield the columns of the source that clauses set, of structs the fields that they set."""
    given = [f for f in merge.source.schema.fields if f.name not in SYSTEM_COLUMNS]
    if any(each.values is None for each in merge.clauses):
        yield from given
    known = [*names, *(field.name for field in given)]
    for clause in merge.clauses:
        for said in clause.values or {}:
            for path in possible_paths(said, known, merge.alias, case_sensitive=case_sensitive):
                if find_name(path[0], known, case_sensitive=case_sensitive) is None:
                    continue
                found = _part(given, path, case_sensitive=case_sensitive)
                if found is not None:
                    yield found
                break


def _part(
    fields: list[st.StructField], path: tuple[str, ...], *, case_sensitive: bool
) -> st.StructField | None:
    """Return a column with nothing in it but the field that a path leads to; None if there is none."""
    name = find_name(path[0], (f.name for f in fields), case_sensitive=case_sensitive)
    if name is None:
        return None
    field = next(each for each in fields if each.name == name)
    if len(path) == 1:
        return field
    if not isinstance(field.dataType, st.StructType):
        return None
    inner = _part(field.dataType.fields, path[1:], case_sensitive=case_sensitive)
    if inner is None:
        return None
    return st.StructField(field.name, st.StructType([inner]), field.nullable)
