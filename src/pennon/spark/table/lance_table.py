"""A table on Spark, behind the names of Delta's Python API: ``LanceTable`` for ``DeltaTable``.

Every change is a plan here, work on the executors, and one commit here.  A handle stands at no version:
each call sees the newest one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from pennon.display.cells import size
from pennon.display.html import object_html
from pennon.errors import ArgumentError, NotFoundError
from pennon.io import open_store
from pennon.ops.columns.settings import update_config
from pennon.ops.versions.branches import restore
from pennon.scan.read.tasks import live_row_counts
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.frames.scan import frame_of
from pennon.spark.history import HistoryEntry, history_frame
from pennon.spark.moments import parse_in_session
from pennon.spark.source.conditions import (
    check_flag,
    check_kind,
    check_properties,
)
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.scan_task import open_snapshot
from pennon.spark.table.builder import LanceTableBuilder
from pennon.spark.table.column_methods import ColumnMethods
from pennon.spark.table.delta_methods import DeltaMethods
from pennon.spark.table.embedding_methods import EmbeddingMethods
from pennon.spark.table.functions import write
from pennon.spark.table.index_methods import IndexMethods
from pennon.spark.table.merge_builder import count_frame
from pennon.spark.table.operations import clone, clone_over
from pennon.spark.table.reads import TableReads
from pennon.spark.table.ref_methods import RefMethods
from pennon.spark.table.row_methods import RowMethods
from pennon.spark.table.search_methods import SearchMethods
from pennon.spark.table.upkeep_methods import UpkeepMethods, file_sizes
from pennon.spark.table_place import place_of
from pennon.table.versions import read_manifest, read_newest_if_any, version_as_of

_PARQUET = re.compile(r"parquet\.`(.+)`", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LanceTable(
    TableReads,
    RowMethods,
    SearchMethods,
    ColumnMethods,
    EmbeddingMethods,
    IndexMethods,
    UpkeepMethods,
    RefMethods,
    DeltaMethods,
):
    """A Lance table on Spark, with the names of Delta's ``DeltaTable``.

    ``from pennon.spark import LanceTable as DeltaTable`` is meant to work.  The examples of the methods
    begin with the ``table`` that is made here.

    >>> rows = spark.createDataFrame([("a", 1), ("b", 2), ("c", 3)], "key string, value long")
    >>> _ = pennon.spark.write(rows, path, mode="overwrite")
    >>> table = LanceTable.forPath(spark, path)
    >>> table.count("value > 1")
    2
    """

    spark: SparkSession
    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    alias_name: str | None = None

    # --- opening --------------------------------------------------------------------------------------

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> Self:
        """Return the table at a path; ``hadoopConf`` are options of the object store.

        Raises NotFoundError if there is none.

        >>> LanceTable.forPath(spark, path).count()
        3
        """
        table = cls(sparkSession, *place_of(sparkSession, path, hadoopConf))
        table.snapshot()
        return table

    @classmethod
    def isLanceTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Return whether there is a table at a path.

        >>> LanceTable.isLanceTable(spark, path), LanceTable.isLanceTable(spark, path + ".2")
        (True, False)
        """
        try:
            cls.forPath(sparkSession, identifier)
        except NotFoundError:
            return False
        return True

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Return whether there is a Lance table at a path, under Delta's name.

        >>> LanceTable.isDeltaTable(spark, path)
        True
        """
        return cls.isLanceTable(sparkSession, identifier)

    def snapshot(self) -> Snapshot:
        """Return the newest version as a `pennon.scan.snapshot.Snapshot`.

        >>> table.snapshot().manifest.version
        1
        """
        return open_snapshot(self.uri, self.storage_options)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the newest version, its numbers and columns; no job runs."""
        snapshot = self.snapshot()
        manifest = snapshot.manifest
        facts = {
            "table": self.uri,
            **({} if manifest.branch is None else {"branch": manifest.branch}),
            "version": manifest.version,
            "rows": f"{sum(live_row_counts(snapshot)):,}",
            "fragments": f"{manifest.summary.fragments:,}",
            "size": size(manifest.summary.size_bytes),
        }
        return object_html("LanceTable", facts, schema_to_arrow(manifest.schema))

    def alias(self, aliasName: str) -> LanceTable:
        """Return the table under a name that conditions may use.

        >>> table.alias("t").delete("t.value = 1").first()
        Row(num_affected_rows=1)
        """
        return changed(self, alias_name=aliasName)

    def toDF(self) -> DataFrame:
        """Return a DataFrame of the newest version, and of no later one.

        >>> table.toDF().where("value > 1").count()
        2
        """
        rows = frame_of(self.spark, self.snapshot(), ReadOptions(uri=self.uri))
        return rows if self.alias_name is None else rows.alias(self.alias_name)

    # --- versions -------------------------------------------------------------------------------------

    def history(self, limit: int | None = None) -> DataFrame:
        """Return the versions, newest first, with the operation that made each.

        >>> _ = table.delete("value = 1")
        >>> [row.operation for row in table.history().collect()]
        ['DELETE', 'WRITE']
        """
        return history_frame(self.spark, self.snapshot(), limit)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make an old version the newest again; return the changed sizes and numbers of files.

        >>> _ = table.delete("value = 1")
        >>> table.restoreToVersion(1).first().num_of_files_after_restore
        1
        """
        check_kind(version, int, "version needs to be an int but got")
        return self._restore(open_snapshot(self.uri, self.storage_options, version))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Make the newest version at a time (in the session's zone) the newest version of the table again.

        >>> made = table.history().first().timestamp
        >>> _ = table.delete("value = 1")
        >>> _ = table.restoreToTimestamp(str(made))
        >>> table.count()
        3
        """
        return self._restore(self._as_of(timestamp))

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> LanceTable:
        """Make the newest version the first one of another table; a shallow clone refers to this table's files.

        >>> table.clone(path + ".2", isShallow=True).count()
        3
        """
        return self._clone(self.snapshot(), target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> LanceTable:
        """Make a version the first one of another table.

        >>> _ = table.delete("value = 1")
        >>> table.cloneAtVersion(1, path + ".2", isShallow=True).count()
        3
        """
        check_kind(version, int, "version needs to be an int but got")
        old = open_snapshot(self.uri, self.storage_options, version)
        return self._clone(old, target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> LanceTable:
        """Make the version of a time (in the session's zone) the first one of another table.

        >>> made = table.history().first().timestamp
        >>> _ = table.delete("value = 1")
        >>> table.cloneAtTimestamp(str(made), path + ".2", isShallow=True).count()
        3
        """
        return self._clone(self._as_of(timestamp), target, isShallow, replace, properties)

    def _clone(
        self,
        source: Snapshot,
        target: str,
        is_shallow: object,
        is_replacing: object,
        properties: Mapping[str, str] | None,
    ) -> LanceTable:
        check_kind(target, str, "target needs to be a string but got")
        check_flag(is_shallow, "isShallow needs to be a boolean but got")
        check_flag(is_replacing, "replace needs to be a boolean but got")
        config = check_properties(properties)
        made = LanceTable(self.spark, *place_of(self.spark, target, self.storage_options))
        store = open_store(made.uri, dict(made.storage_options) or None)
        shallow = bool(is_shallow)
        if is_replacing and read_newest_if_any(store) is not None:
            clone_over(self.spark, source, made.snapshot(), is_shallow=shallow, config=config)
            return made
        clone(self.spark, source, store, is_shallow=shallow)
        if config:
            update_config(made.snapshot(), config)
        return made

    def _as_of(self, timestamp: str) -> Snapshot:
        """Return the version of a time."""
        check_kind(timestamp, str, "timestamp needs to be a string but got")
        try:
            when = parse_in_session(self.spark, timestamp)
        except ArgumentError as error:
            message = f"The provided timestamp ('{timestamp}') cannot be converted to a valid timestamp: {error}"
            raise ArgumentError(message) from None
        store = open_store(self.uri, dict(self.storage_options) or None)
        return Snapshot(store, read_manifest(store, version_as_of(store, when)))

    def _restore(self, old: Snapshot) -> DataFrame:
        now = file_sizes(self.snapshot().manifest)
        then = file_sizes(old.manifest)
        removed = [size for path, size in now.items() if path not in then]
        restored = [size for path, size in then.items() if path not in now]
        numbers = [
            ("table_size_after_restore", sum(then.values())),
            ("num_of_files_after_restore", len(then)),
            ("num_removed_files", len(removed)),
            ("num_restored_files", len(restored)),
            ("removed_files_size", sum(removed)),
            ("restored_files_size", sum(restored)),
        ]
        metrics = {
            "tableSizeAfterRestore": sum(then.values()),
            "numOfFilesAfterRestore": len(then),
            "numRemovedFiles": len(removed),
            "numRestoredFiles": len(restored),
            "removedFilesSize": sum(removed),
            "restoredFilesSize": sum(restored),
        }
        entry = HistoryEntry("RESTORE", {"version": str(old.manifest.version)}, metrics)
        restore(old, entry.properties())
        return count_frame(self.spark, numbers)

    # --- making ---------------------------------------------------------------------------------------

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> LanceTableBuilder[LanceTable]:
        """Return a builder of a table where none is.

        >>> builder = LanceTable.create(spark).location(path + ".2").addColumn("id", "long")
        >>> builder.execute().toDF().columns
        ['id']
        """
        return LanceTableBuilder(_session(sparkSession), "create", cls)

    @classmethod
    def createIfNotExists(
        cls, sparkSession: SparkSession | None = None
    ) -> LanceTableBuilder[LanceTable]:
        """Return a builder of a table; a table that exists stays as it is.

        >>> builder = LanceTable.createIfNotExists(spark).location(path).addColumn("id", "long")
        >>> builder.execute().toDF().columns
        ['key', 'value']
        """
        return LanceTableBuilder(_session(sparkSession), "createIfNotExists", cls)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> LanceTableBuilder[LanceTable]:
        """Return a builder of a new, empty version of an existing table.

        >>> builder = LanceTable.replace(spark).location(path).addColumn("id", "long")
        >>> builder.execute().toDF().columns
        ['id']
        """
        return LanceTableBuilder(_session(sparkSession), "replace", cls)

    @classmethod
    def createOrReplace(
        cls, sparkSession: SparkSession | None = None
    ) -> LanceTableBuilder[LanceTable]:
        """Return a builder of a new table, or of a new, empty version of an existing one.

        >>> builder = LanceTable.createOrReplace(spark).location(path).addColumn("id", "long")
        >>> builder.execute().toDF().columns
        ['id']
        """
        return LanceTableBuilder(_session(sparkSession), "createOrReplace", cls)

    @classmethod
    def convertToLance(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | st.StructType | None = None,
        *,
        location: str | None = None,
    ) -> LanceTable:
        """Write the rows of ``parquet.`path``` to a new table at ``location``.

        Spark finds the columns of partitions by itself; ``partitionSchema`` gives their types.

        >>> table.toDF().write.parquet(path + ".parquet")
        >>> LanceTable.convertToLance(spark, f"parquet.`{path}.parquet`", location=path + ".2").count()
        3
        """
        found = _PARQUET.fullmatch(identifier.strip())
        if found is None:
            message = f"convertToLance takes parquet.`path`, not {identifier!r}"
            raise ArgumentError(message)
        if location is None:
            message = "Lance files are not Parquet files, so the rows are copied: say location=path"
            raise ArgumentError(message)
        rows = sparkSession.read.parquet(found.group(1))
        if partitionSchema is not None:
            wanted = partitionSchema
            if isinstance(wanted, str):
                wanted = sparkSession.createDataFrame([], wanted).schema
            for each in wanted:
                rows = rows.withColumn(each.name, rows[each.name].cast(each.dataType))
        write(rows, location)
        return cls(sparkSession, location)


def _session(given: SparkSession | None) -> SparkSession:
    found = SparkSession.getActiveSession() if given is None else given
    if found is None:
        message = "there is no active Spark session; hand one over"
        raise ArgumentError(message)
    return found
