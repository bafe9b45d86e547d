"""Compaction and clustering on the executors, with Delta's names."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.core.near_names import did_you_mean
from pennon.errors import UnknownOptionError
from pennon.ops.cluster.plan import plan_clusterings
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import Rewritten, commit_compact, plan_compact
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.cluster import put_in_order
from pennon.spark.changes.row_changes import analysed
from pennon.spark.frames.scan import ADDRESS, address_frame
from pennon.spark.history import HistoryEntry
from pennon.spark.keywords import ClusterKeywords, CompactionKeywords
from pennon.spark.run_tasks import run_tasks
from pennon.spark.source.conditions import (
    Condition,
    as_column,
    check_condition,
    column_names,
    columns_named,
)
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
_FILES = st.StructType(
    [st.StructField("num", st.LongType()), st.StructField("size", st.LongType())]
)
_Z_ORDER = st.StructType(
    [
        st.StructField("strategyName", st.StringType()),
        st.StructField("inputCubeFiles", _FILES),
        st.StructField("inputOtherFiles", _FILES),
        st.StructField("inputNumCubes", st.LongType()),
        st.StructField("mergedFiles", _FILES),
        st.StructField("numOutputCubes", st.LongType()),
        st.StructField("mergedNumCubes", st.LongType()),
    ]
)
_METRICS = st.StructType(
    [
        st.StructField("numFilesAdded", st.LongType()),
        st.StructField("numFilesRemoved", st.LongType()),
        st.StructField("filesAdded", _SIZES),
        st.StructField("filesRemoved", _SIZES),
        st.StructField("partitionsOptimized", st.LongType()),
        st.StructField("zOrderStats", _Z_ORDER),
        st.StructField("numBatches", st.LongType()),
        st.StructField("totalConsideredFiles", st.LongType()),
        st.StructField("totalFilesSkipped", st.LongType()),
        st.StructField("startTimeMs", st.LongType()),
        st.StructField("endTimeMs", st.LongType()),
    ]
)
_CLUSTER_OPTIONS = frozenset(
    ["target_rows_per_fragment", "max_bytes_per_file", "max_rows_per_group", "data_storage_version"]
)
_RESULT = st.StructType(
    [st.StructField("path", st.StringType()), st.StructField("metrics", _METRICS)]
)


@dataclass(frozen=True, slots=True)
class LanceOptimizeBuilder:
    """The compaction of some fragments of a version of a table.

    >>> _ = table.optimize().executeZOrderBy("key", "value")
    >>> table.fragments().count()
    1
    """

    spark: SparkSession
    snapshot: Snapshot = field(repr=False)
    condition: Condition | None = None

    def where(self, partitionFilter: Condition) -> LanceOptimizeBuilder:
        """Compact only fragments in which a condition is true for some row.

        A Lance table has no partitions, so the condition may name any column.
        """
        check_condition(partitionFilter, "partitionFilter")
        return replace(self, condition=partitionFilter)

    def executeCompaction(self, **options: Unpack[CompactionKeywords]) -> DataFrame:
        """Rewrite small fragments, and those with many deleted rows, as larger ones.

        ``options`` are those of ``LanceDataset.optimize.compact_files``.  Rows keep their order and their stable ids.
        There is no new version where nothing is to be done.
        """
        started = _now_ms()
        asked = self._options(options)
        task = plan_compact(self.snapshot, asked)
        rewritten = run_tasks(self.spark, task, task.count)
        return self._finish(rewritten, started, task.count, asked, {"zOrderBy": "[]"})

    def executeZOrderBy(
        self, *cols: str | Sequence[str], **options: Unpack[ClusterKeywords]
    ) -> DataFrame:
        """Put rows that are close to each other in all of some columns into the same files.

        Each of the columns then tells which files may hold a row; what one of them gains is the less, the
        more they are; rows of one column are sorted by it.  The other things are those of `executeSortBy`.
        """
        return self._cluster(cols, options, "executeZOrderBy", curved=True)

    def executeSortBy(
        self, *cols: str | Sequence[str], **options: Unpack[ClusterKeywords]
    ) -> DataFrame:
        """Put rows in the order of columns, the first one first, NULLs before all other values.

        ``options``: ``target_rows_per_fragment``, ``max_bytes_per_file``, ``max_rows_per_group`` and
        ``data_storage_version``, as those of `executeCompaction`.  All rows of the table are written anew,
        or those of the fragments that `where` leaves; they take their stable ids and versions along.  Raises
        RetryableConflict if another writer changed such a fragment meanwhile.
        """
        return self._cluster(cols, options, "executeSortBy", curved=False)

    def _cluster(
        self,
        cols: Sequence[str | Sequence[str]],
        given: Mapping[str, Any],
        what: str,
        *,
        curved: bool,
    ) -> DataFrame:
        started = _now_ms()
        unknown = given.keys() - _CLUSTER_OPTIONS
        if unknown:
            message = (
                f"{what} has no option {', '.join(sorted(unknown))}; it has "
                f"{', '.join(sorted(_CLUSTER_OPTIONS))}"
                f"{did_you_mean(min(unknown), _CLUSTER_OPTIONS)}"
            )
            raise UnknownOptionError(message)
        columns = column_names(cols, what)
        asked = self._options(given)
        plans = plan_clusterings(self.snapshot, columns, asked, curved=curved and len(columns) > 1)
        rewritten = [put_in_order(self.spark, plan) for plan in plans]
        key = "zOrderBy" if curved else "sortBy"
        return self._finish(rewritten, started, len(plans), asked, {key: json.dumps(columns)})

    def _options(self, given: Mapping[str, Any]) -> CompactOptions:
        excluded = self._excluded()
        options = {**given, "excluded_fragment_ids": excluded} if excluded else given
        return CompactOptions.of(options, self.snapshot.manifest.config)

    def _finish(
        self,
        rewritten: Sequence[Rewritten],
        started: int,
        batches: int,
        asked: CompactOptions,
        parameters: Mapping[str, str],
    ) -> DataFrame:
        """Commit what was rewritten, if anything was; return Delta's metrics."""
        added = _sizes(fragment for each in rewritten for fragment in each.new)
        removed = _sizes(fragment for each in rewritten for fragment in each.old)
        if rewritten:
            entry = self._history_entry(added, removed, parameters)
            commit_compact(self.snapshot.store, rewritten, entry.properties())
        considered = self._files(asked.excluded_fragment_ids)
        metrics = (
            len(added),
            len(removed),
            _summary(added),
            _summary(removed),
            0,
            _z_order(removed, batches) if parameters.get("zOrderBy", "[]") != "[]" else None,
            batches,
            considered,
            considered - len(removed),
            started,
            _now_ms(),
        )
        return self.spark.createDataFrame([(self.snapshot.store.uri, metrics)], _RESULT)

    def _history_entry(
        self, added: Sequence[int], removed: Sequence[int], parameters: Mapping[str, str]
    ) -> HistoryEntry:
        predicate = "[]" if self.condition is None else f'["{self.condition}"]'
        numbers = {
            "numAddedFiles": len(added),
            "numRemovedFiles": len(removed),
            "numAddedBytes": sum(added),
            "numRemovedBytes": sum(removed),
        }
        return HistoryEntry("OPTIMIZE", {"predicate": predicate, **parameters}, numbers)

    def _files(self, excluded: Iterable[int]) -> int:
        """Return how many files the table has, without those of the fragments excluded."""
        without = frozenset(excluded)
        fragments = self.snapshot.manifest.fragments
        return sum(len(fragment.files) for fragment in fragments if fragment.id not in without)

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


def _z_order(removed: Sequence[int], groups: int) -> tuple[Any, ...]:
    """Return Delta's account of a Z-ordering; no file of a Lance table is marked as ordered already."""
    files = (len(removed), sum(removed))
    return ("all", (0, 0), files, 0, files, groups, None)


def _now_ms() -> int:
    return round(1000 * time.time())
