"""The methods of `LanceTable` that keep a table in shape: details, clean-up, compaction."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack

from pyspark.sql import types as st

from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.run import clean
from pennon.ops.doctor.examine import examine
from pennon.spark.keywords import CompactionKeywords
from pennon.spark.run_tasks import run_tasks
from pennon.spark.table.builder import CLUSTERING, COMMENT
from pennon.spark.table.handle import TableHandle
from pennon.spark.table.optimize_builder import LanceOptimizeBuilder
from pennon.table.manifest import Manifest
from pennon.table.versions import list_locations, read_manifest_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WEEK_HOURS: Final = 168.0
_CHECKS_RETENTION: Final = "spark.databricks.delta.retentionDurationCheck.enabled"
_DETAIL: Final = st.StructType(
    [
        st.StructField("format", st.StringType()),
        st.StructField("id", st.StringType()),
        st.StructField("name", st.StringType()),
        st.StructField("description", st.StringType()),
        st.StructField("location", st.StringType()),
        st.StructField("createdAt", st.TimestampType()),
        st.StructField("lastModified", st.TimestampType()),
        st.StructField("partitionColumns", st.ArrayType(st.StringType())),
        st.StructField("clusteringColumns", st.ArrayType(st.StringType())),
        st.StructField("numFiles", st.LongType()),
        st.StructField("sizeInBytes", st.LongType()),
        st.StructField("properties", st.MapType(st.StringType(), st.StringType())),
        st.StructField("version", st.LongType()),
        st.StructField("numRows", st.LongType()),
    ]
)
_FINDINGS: Final = (
    "severity string, code string, what string, `where` string, advice string, file string, fragment long, "
    "column string, index string"
)


class UpkeepMethods:
    """Details of a table, clean-up of old versions, compaction."""

    __slots__ = ()

    def detail(self: TableHandle) -> DataFrame:
        """Return one row about the table: location, times, files, bytes, rows, config.

        >>> row = table.detail().first()
        >>> row.format, row.numFiles, row.numRows
        ('lance', 1, 3)
        """
        snapshot = self.snapshot()
        manifest = snapshot.manifest
        oldest = min(list_locations(snapshot.store), key=lambda each: each.version)
        config = dict(manifest.config)
        clustering = config.pop(CLUSTERING, "")
        sizes = file_sizes(manifest)
        summary = manifest.summary
        row: tuple[Any, ...] = (
            "lance",
            None,
            None,
            config.pop(COMMENT, None),
            snapshot.store.uri,
            read_manifest_at(snapshot.store, oldest).timestamp,
            manifest.timestamp,
            [],
            [name for name in clustering.split(",") if name],
            len(sizes),
            sum(sizes.values()),
            config,
            manifest.version,
            summary.physical_rows - summary.deleted_rows,
        )
        return self.spark.createDataFrame([row], _DETAIL)

    def vacuum(self: TableHandle, retentionHours: float | None = None) -> DataFrame:
        """Delete versions that are older, and files that no version needs; tagged versions stay.

        Files of writers that have not committed yet are safe for a week.  A shorter time is refused
        unless ``spark.databricks.delta.retentionDurationCheck.enabled`` is false, as Delta refuses it,
        for then they are not.

        >>> table.vacuum().columns
        ['path']
        """
        hours = _WEEK_HOURS if retentionHours is None else float(retentionHours)
        if hours < 0:
            message = f"retentionHours must be 0 or more, got {retentionHours}"
            raise ArgumentError(message)
        if hours < _WEEK_HOURS and self.spark.conf.get(_CHECKS_RETENTION, "true") != "false":
            message = (
                f"a retention of {hours} hours is less than a week: files of writers under way may go; "
                f"set {_CHECKS_RETENTION} to false if nobody writes"
            )
            raise ArgumentError(message)
        policy = Policy(
            timedelta(hours=hours), delete_unverified=hours < _WEEK_HOURS, error_if_tagged=False
        )
        snapshot = self.snapshot()
        clean(snapshot, policy)
        schema = st.StructType([st.StructField("path", st.StringType())])
        return self.spark.createDataFrame([(snapshot.store.uri,)], schema)

    def doctor(self: TableHandle, deep: bool = False) -> DataFrame:
        """Examine the newest version and all around it; return a row for each finding, the worst first.

        The executors look at the fragments and indices, one task each; ``deep``: they decode every page.  Nothing is
        written.  `pennon.doctor.repair` makes a version without what is broken.

        >>> table.doctor(deep=True).where("severity = 'error'").count()
        0
        """
        store = open_store(self.uri, dict(self.storage_options) or None)
        exam = examine(store, deep=deep, run=lambda task: run_tasks(self.spark, task, task.count))
        rows = [
            (
                str(each.severity),
                each.code,
                each.what,
                each.where,
                each.advice,
                each.file,
                each.fragment,
                each.column,
                each.index,
            )
            for each in exam.report()
        ]
        return self.spark.createDataFrame(rows, _FINDINGS)

    def optimize(self: TableHandle) -> LanceOptimizeBuilder:
        """Return a builder of a compaction, or of a clustering.

        >>> _ = table.optimize().executeSortBy("key")
        >>> table.toDF().first().key
        'a'
        """
        return LanceOptimizeBuilder(self.spark, self.snapshot())

    def compact(self: TableHandle, **options: Unpack[CompactionKeywords]) -> DataFrame:
        """Compact the table, with the options of ``LanceDataset.optimize.compact_files``.

        >>> _ = table.delete("value = 1")
        >>> _ = table.compact()
        >>> table.fragments().count()
        1
        """
        return LanceOptimizeBuilder(self.spark, self.snapshot()).executeCompaction(**options)


def file_sizes(manifest: Manifest) -> dict[str, int]:
    """Return the data files of a version with their sizes."""
    return {f.path: f.size_bytes or 0 for each in manifest.fragments for f in each.files}
