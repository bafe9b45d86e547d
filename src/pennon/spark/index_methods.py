"""The indices of a `pennon.spark.LanceTable`, made on the executors; Delta's table has none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import FormatError, LanceError, NotFoundError, UnsupportedError
from pennon.ops.index.build import IndexBuild
from pennon.ops.index.create import create_index
from pennon.ops.index.drop import drop_index
from pennon.ops.index.optimize import optimize_indices
from pennon.ops.index.vector_arguments import is_vector_kind
from pennon.ops.index.vectors import create_vector_index
from pennon.scan.plan import live_row_count
from pennon.spark.conditions import check_flag, check_text
from pennon.spark.run_tasks import NumberedTask, Progress, run_tasks
from pennon.spark.scan_frame import parallelism_of
from pennon.spark.table_handle import TableHandle
from pennon.spark.task_errors import typed_errors
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import kind_of, parse_index_bytes, parse_indices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ERRORS: Final[tuple[type[LanceError], ...]] = (FormatError, NotFoundError, UnsupportedError)
_SCHEMA: Final = (
    "name string, kind string, column string, uuid string, version bigint, "
    "indexed_rows bigint, unindexed_rows bigint"
)


@dataclass(frozen=True, slots=True)
class BuildSegment:
    """Makes the segment of the group of a number; it pickles."""

    build: IndexBuild

    def __call__(self, number: int) -> bytes:
        """See `pennon.spark.run_tasks.NumberedTask`."""
        return self.build.run(number).wire


@dataclass(frozen=True, slots=True)
class MergeSegments:
    """Makes one segment of several; it pickles."""

    build: IndexBuild
    segments: tuple[Index, ...]

    def __call__(self, _number: int) -> bytes:
        """See `pennon.spark.run_tasks.NumberedTask`."""
        return self.build.merge(self.segments).wire


@dataclass(frozen=True, slots=True)
class SparkBuilder:
    """Spark's executors, as who makes segments; one of them merges."""

    spark: SparkSession
    progress: Progress | None = None

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `pennon.ops.index.create.Builder`."""
        build = build.in_parts(parallelism_of(self.spark).least)
        return self._run(BuildSegment(build), len(build.groups))

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `pennon.ops.index.create.Builder`."""
        (merged,) = self._run(MergeSegments(build, tuple(segments)), 1)
        return merged

    def _run(self, task: NumberedTask, count: int) -> list[Index]:
        with typed_errors(*_ERRORS):
            messages = run_tasks(self.spark, task, count, progress=self.progress)
        return [parse_index_bytes(message) for message in messages]


class IndexMethods:
    """Making indices, bringing them up to date and dropping them."""

    __slots__ = ()

    def createIndex(
        self: TableHandle,
        column: str,
        kind: str,
        name: str | None = None,
        *,
        replace: bool = True,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> None:
        """Make an index of a column, or of a field inside one (``a.b``), and commit it.

        ``kind``: BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER or INVERTED, and ``parameters`` as those of
        `pennon.LanceDataset.create_scalar_index`, which has the same errors.  Executors index a share of the
        fragments each, and one merges what they made, a block at a time.  ``progress`` is told how many tasks are
        done, of how many.

        Kinds of vectors (IVF_PQ, …) have the parameters of `pennon.LanceDataset.create_index`: the driver trains
        on a sample, executors code the rows.
        """
        check_text(column, "column")
        check_text(kind, "kind")
        check_flag(replace, "replace must be bool, got")
        if is_vector_kind(kind):
            create_vector_index(
                self.snapshot(),
                column,
                kind,
                name,
                replace=replace,
                arguments=parameters,
                builder=SparkBuilder(self.spark, progress),
            )
            return
        create_index(
            self.snapshot(),
            column,
            kind,
            name,
            replace=replace,
            parameters=parameters,
            builder=SparkBuilder(self.spark, progress),
        )

    def optimizeIndices(
        self: TableHandle,
        *names: str,
        numIndicesToMerge: int | None = None,
        retrain: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Index the rows that came since, of all indices or of those named.

        The arguments are those of `pennon.dataset.maintenance.DatasetOptimizer.optimize_indices`.
        """
        check_flag(retrain, "retrain must be bool, got")
        optimize_indices(
            self.snapshot(),
            num_indices_to_merge=numIndicesToMerge,
            index_names=names or None,
            retrain=retrain,
            builder=SparkBuilder(self.spark, progress),
        )

    def dropIndex(self: TableHandle, name: str) -> None:
        """Drop an index; its files go at `vacuum`.  Raises IndexNotFoundError if there is none of that name."""
        check_text(name, "name")
        drop_index(self.snapshot(), name)

    def indices(self: TableHandle) -> DataFrame:
        """Return the segments of all indices, and how many live rows each covers and does not cover."""
        snapshot = self.snapshot()
        manifest = snapshot.manifest
        rows = {each.id: live_row_count(snapshot, each) for each in manifest.fragments}
        names = {each.id: each.name for each in manifest.schema.walk()}
        found = []
        for index in parse_indices(manifest.indices):
            if index.name in SYSTEM:
                continue
            covered = sum(rows.get(number, 0) for number in index.fragment_ids or ())
            column = ", ".join(names.get(number, "") for number in index.field_ids)
            kind, rest = kind_of(index)[1], sum(rows.values()) - covered
            found.append(
                (index.name, kind, column, index.uuid, index.dataset_version, covered, rest)
            )
        return self.spark.createDataFrame(sorted(found), _SCHEMA)
