"""The plan of a write of Spark, and the one commit of what all its tasks wrote.

Plan, task and commit are those of `pennon.ops.write`; here is the Spark schema before them.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql.types import StructType

from pennon.errors import ArgumentError, UnsupportedError
from pennon.io import open_store
from pennon.io.store import Store
from pennon.ops.fit import fit_schema
from pennon.ops.write import FileLimits, WriteMode, plan_write, version_of_table
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow, schema_to_arrow
from pennon.schema.maps import with_maps_of
from pennon.schema.version import DEFAULT_VERSION, FileVersion
from pennon.spark.names import check_new_names
from pennon.spark.source.evolution import plan_evolution
from pennon.spark.source.options import WriteOptions
from pennon.spark.source.row_write import TablePlan
from pennon.spark.source.table_fit import FitRule, check_sizes, fit_columns
from pennon.spark.types import lance_schema
from pennon.table.manifest import Manifest
from pennon.table.versions import read_newest_if_any


def plan_table_write(options: WriteOptions, schema: StructType, mode: WriteMode) -> TablePlan:
    """Pin the table's version and settle the schema of the rows (on the driver).

    Raises SchemaMismatchError where a DataFrame does not fit the table that is there,
    AlreadyExistsError for a create over a table, UnsupportedError for a type that the file version
    cannot hold, InvalidSchemaError for names that no table gets.
    """
    check_new_names(schema, case_sensitive=options.case_sensitive)
    if options.overwrite_schema and mode is not WriteMode.OVERWRITE:
        message = "overwriteSchema goes with an overwrite; an append grows a table with mergeSchema"
        raise ArgumentError(message)
    store = open_store(options.uri, dict(options.storage_options) or None)
    plan = _plan(options, schema, mode, store, read_newest_if_any(store))
    return plan if options.app is None else replace(plan, app=options.app)


def _plan(
    options: WriteOptions, schema: StructType, mode: WriteMode, store: Store, base: Manifest | None
) -> TablePlan:
    if base is None or mode is WriteMode.CREATE or options.overwrite_schema:
        return _plan_new(options, schema, mode, store, base)
    _check_row_ids(options, base)
    if mode is WriteMode.OVERWRITE:
        return _plan_overwrite(options, schema, store, base)
    return _plan_append(options, schema, store, base)


def _plan_new(
    options: WriteOptions, schema: StructType, mode: WriteMode, store: Store, base: Manifest | None
) -> TablePlan:
    """Plan a table, or a version, that has the types of the DataFrame."""
    if base is not None:
        _check_row_ids(options, base)
    version = version_of_table(base, mode, _asked_version(options)) or DEFAULT_VERSION
    rows = lance_schema(schema, options.fixed_size_lists, version)
    write = plan_write(store, rows, mode, base=base, version=version, limits=_limits(options))
    return TablePlan(write, stable_row_ids=options.stable_row_ids)


def _plan_append(
    options: WriteOptions, schema: StructType, store: Store, base: Manifest
) -> TablePlan:
    version = version_of_table(base, WriteMode.APPEND, _asked_version(options)) or DEFAULT_VERSION
    shown = schema_to_arrow(base.schema)
    fit = fit_columns(shown, schema, _rule(options, version))
    evolution = plan_evolution(Snapshot(store, base), fit.table)
    first = fit.rows if evolution is None else shown
    write = plan_write(
        store, first, WriteMode.APPEND, base=base, version=version, limits=_limits(options)
    )
    if evolution is None:
        return TablePlan(write)
    task = replace(write.task, schema=fit_schema(evolution.schema, schema_from_arrow(fit.rows)))
    return TablePlan(replace(write, task=task, table_schema=evolution.schema), evolution)


def _plan_overwrite(
    options: WriteOptions, schema: StructType, store: Store, base: Manifest
) -> TablePlan:
    """Plan rows in place of the others, in a table that keeps its columns and their types."""
    mode = WriteMode.OVERWRITE
    version = version_of_table(base, mode, _asked_version(options)) or DEFAULT_VERSION
    shown = schema_to_arrow(with_maps_of(base.schema, version))
    fit = fit_columns(shown, schema, _rule(options, version))
    check_sizes(options.fixed_size_lists, fit, shown)
    write = plan_write(store, fit.table, mode, base=base, version=version, limits=_limits(options))
    given = fit_schema(write.table_schema, schema_from_arrow(fit.rows))
    return TablePlan(replace(write, task=replace(write.task, schema=given)))


def _rule(options: WriteOptions, version: FileVersion) -> FitRule:
    return FitRule(version, options.merge_schema, options.case_sensitive, options.fixed_size_lists)


def _check_row_ids(options: WriteOptions, base: Manifest) -> None:
    if options.stable_row_ids and not base.has_stable_row_ids:
        message = "stable row ids can be chosen for a new table only, and this one has none"
        raise UnsupportedError(message)


def _asked_version(options: WriteOptions) -> FileVersion | None:
    name = options.data_storage_version
    return None if name is None else FileVersion.parse(name)


def _limits(options: WriteOptions) -> FileLimits:
    default = FileLimits()
    rows = options.max_rows_per_file or default.max_rows
    return FileLimits(rows, options.max_bytes_per_file or default.max_bytes)
