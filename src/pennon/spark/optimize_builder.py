"""Compaction on the executors, with Delta's names."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import UnsupportedError
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import CompactTask, Rewritten, commit_compact, plan_compact
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.conditions import Condition, as_column, check_condition, columns_named
from pennon.spark.history import Told
from pennon.spark.messages import parse_fragments, serialize_fragments
from pennon.spark.row_changes import analysed
from pennon.spark.run_tasks import run_tasks
from pennon.spark.scan_frame import ADDRESS, address_frame
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SIZES = st.StructType(
    [
        st.StructField("min", st.LongType()),
        st.StructField("max", st.LongType()),
        st.StructField("avg", st.DoubleType()),
        st.StructField("totalFiles", st.LongType()),
        st.StructField("totalSize", st.LongType()),
    ]
)
_METRICS = st.StructType(
    [
        st.StructField("numFilesAdded", st.LongType()),
        st.StructField("numFilesRemoved", st.LongType()),
        st.StructField("filesAdded", _SIZES),
        st.StructField("filesRemoved", _SIZES),
        st.StructField("partitionsOptimized", st.LongType()),
        st.StructField("numBatches", st.LongType()),
        st.StructField("totalConsideredFiles", st.LongType()),
        st.StructField("totalFilesSkipped", st.LongType()),
        st.StructField("startTimeMs", st.LongType()),
        st.StructField("endTimeMs", st.LongType()),
    ]
)
_RESULT = st.StructType(
    [st.StructField("path", st.StringType()), st.StructField("metrics", _METRICS)]
)


@dataclass(frozen=True, slots=True)
class RewriteBin:
    """Rewrites the bin of fragments of a number, and says which ones it became; it pickles."""

    task: CompactTask

    def __call__(self, number: int) -> bytes:
        """See `pennon.spark.run_tasks.NumberedTask`."""
        return serialize_fragments(self.task.run(number).new)


@dataclass(frozen=True, slots=True)
class LanceOptimizeBuilder:
    """What is to be compacted of a version of a table."""

    spark: SparkSession
    snapshot: Snapshot
    condition: Condition | None = None

    def where(self, partitionFilter: Condition) -> LanceOptimizeBuilder:
        """Compact only fragments in which a condition is true for some row.

        A Lance table has no partitions, so the condition may name any column.
        """
        check_condition(partitionFilter, "partitionFilter")
        return replace(self, condition=partitionFilter)

    def executeCompaction(self, **options: Any) -> DataFrame:
        """Rewrite small fragments, and those with many deleted rows, as larger ones.

        ``options`` are those of ``LanceDataset.optimize.compact_files``.  Rows keep their order and their stable ids.
        There is no new version where nothing is to be done.
        """
        started = round(1000 * time.time())
        manifest = self.snapshot.manifest
        excluded = self._excluded()
        given = {**options, "excluded_fragment_ids": excluded} if excluded else options
        task = plan_compact(self.snapshot, CompactOptions.of(given, manifest.config))
        messages = run_tasks(self.spark, RewriteBin(task), task.count)
        rewritten = [
            Rewritten(manifest.version, old, tuple(parse_fragments(message)))
            for old, message in zip(task.bins, messages, strict=True)
        ]
        added = _sizes(fragment for each in rewritten for fragment in each.new)
        removed = _sizes(fragment for each in rewritten for fragment in each.old)
        if rewritten:
            told = self._told(added, removed)
            commit_compact(self.snapshot.store, rewritten, told.properties())
        files = sum(len(fragment.files) for fragment in manifest.fragments)
        metrics = (
            len(added),
            len(removed),
            _summary(added),
            _summary(removed),
            0,
            task.count,
            files,
            files - len(removed),
            started,
            round(1000 * time.time()),
        )
        return self.spark.createDataFrame([(self.snapshot.store.uri, metrics)], _RESULT)

    def executeZOrderBy(self, *cols: str | Sequence[str]) -> DataFrame:
        """Refuse: rows are not put in another order yet."""
        message = (
            f"Z-ordering by {cols} is not done yet; write the table sorted, or executeCompaction()"
        )
        raise UnsupportedError(message)

    def _told(self, added: Sequence[int], removed: Sequence[int]) -> Told:
        predicate = "[]" if self.condition is None else f'["{self.condition}"]'
        numbers = {
            "numAddedFiles": len(added),
            "numRemovedFiles": len(removed),
            "numAddedBytes": sum(added),
            "numRemovedBytes": sum(removed),
        }
        return Told("OPTIMIZE", {"predicate": predicate, "zOrderBy": "[]"}, numbers)

    def _excluded(self) -> tuple[int, ...]:
        """Return the fragments without a row for which the condition is true."""
        condition = self.condition
        if condition is None:
            return ()
        names = list(schema_to_arrow(self.snapshot.manifest.schema).names)

        def build(columns: Sequence[str]) -> DataFrame:
            rows = address_frame(self.spark, self.snapshot, columns).where(as_column(condition))
            return rows.select(sf.shiftright(sf.col(ADDRESS), 32).alias("fragment")).distinct()

        found = analysed(build, columns_named([condition], names, None), names).collect()
        wanted = {row.fragment for row in found}
        return tuple(f.id for f in self.snapshot.manifest.fragments if f.id not in wanted)


def _sizes(fragments: Iterable[Fragment]) -> list[int]:
    return [file.size_bytes or 0 for fragment in fragments for file in fragment.files]


def _summary(sizes: Sequence[int]) -> tuple[int | None, int | None, float, int, int]:
    total = sum(sizes)
    average = total / len(sizes) if sizes else 0.0
    return min(sizes, default=None), max(sizes, default=None), average, len(sizes), total
