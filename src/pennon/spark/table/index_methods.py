"""The indices of a `pennon.spark.LanceTable`, made on the executors; Delta's table has none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack

from pennon.errors import FormatError, LanceError, NotFoundError, UnsupportedError
from pennon.index.vector.build.train import CENTROIDS, Done
from pennon.ops.bars import bar, counted
from pennon.ops.index.build import IndexBuild
from pennon.ops.index.builders import MergeTask
from pennon.ops.index.create import create_index
from pennon.ops.index.drop import drop_index
from pennon.ops.index.optimize import optimize_indices
from pennon.ops.index.vector_build import VectorBuild
from pennon.ops.index.vector_shuffle import VectorShuffle
from pennon.scan.read.tasks import live_row_count, plan_tasks
from pennon.schema.project import walk_paths
from pennon.spark.frames.scan import parallelism_of
from pennon.spark.keywords import IndexKeywords
from pennon.spark.run_tasks import Progress, Stages, Task, run_on_blocks, run_tasks, shuffled_blocks
from pennon.spark.source.conditions import check_flag, check_text
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES
from pennon.spark.source.partitions import Partition, pack_tasks
from pennon.spark.table.handle import TableHandle
from pennon.spark.task_errors import typed_errors
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import kind_of, parse_indices

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ERRORS: Final[tuple[type[LanceError], ...]] = (FormatError, NotFoundError, UnsupportedError)
_TRAINING: Final = 10
"""As many tasks each of the two stages of a training counts for."""
_SCHEMA: Final = (
    "name string, kind string, column string, uuid string, version bigint, "
    "indexed_rows bigint, unindexed_rows bigint"
)


@dataclass(frozen=True, slots=True)
class SparkBuilder:
    """Spark's executors, as who makes segments; one of them merges."""

    spark: SparkSession
    progress: Progress | None = None

    def stage(
        self, build: IndexBuild, name: str, total: int, unit: str
    ) -> AbstractContextManager[Done]:
        """See `pennon.ops.index.build.Builder`."""
        stages = self._stages(self._shares(build))
        told = stages.told(0 if name == CENTROIDS else 1)
        return nullcontext(counted(told, total))

    def segments(self, build: IndexBuild) -> Sequence[Index]:
        """See `pennon.ops.index.build.Builder`; of vectors it is one segment, whose rows Spark shuffles."""
        if isinstance(build, VectorBuild) and build.model is not None:
            shares = self._shares(build)
            if shares:
                return (self._shuffled(build, shares),)
        build = build.in_parts(parallelism_of(self.spark).least)
        return self._run(build, len(build.groups))

    def merge(self, build: IndexBuild, segments: Sequence[Index]) -> Index:
        """See `pennon.ops.index.build.Builder`."""
        (merged,) = self._run(MergeTask(build, tuple(segments)), 1)
        return merged

    def _shuffled(self, build: VectorBuild, shares: Sequence[Partition]) -> Index:
        plan = VectorShuffle.of(build, shares, parallelism_of(self.spark).most)
        stages = self._stages(shares)
        with typed_errors(*_ERRORS):
            blocks = shuffled_blocks(
                self.spark,
                plan.split,
                len(shares),
                targets=plan.parts,
                per_target=plan.partitions_per_part,
            )
            count = len(shares) + plan.parts
            found = run_on_blocks(blocks, plan.write, count=count, progress=stages.told(2))
            parts = dict(each for each in found if each is not None)
            if plan.parts == len(parts) == 1:
                (index,) = parts.values()
            else:
                (index,) = run_tasks(self.spark, plan.join(parts), 1)
        joined = stages.told(3)
        if joined is not None:
            joined(1, 1)
        return index

    def _stages(self, shares: Sequence[Partition]) -> Stages:
        return Stages(self.progress, (_TRAINING, _TRAINING, max(len(shares), 1), 1))

    def _shares(self, build: IndexBuild) -> list[Partition]:
        """Return the rows that each task codes."""
        tasks = plan_tasks(build.snapshot, build.fragments)
        return pack_tasks(tasks, DEFAULT_PARTITION_BYTES, parallelism_of(self.spark))

    def _run(self, task: Task[int, Index], count: int) -> list[Index]:
        with typed_errors(*_ERRORS):
            return run_tasks(self.spark, task, count, progress=self.progress)


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
        train: bool = True,
        progress: Progress | None = None,
        **parameters: Unpack[IndexKeywords],
    ) -> None:
        """Make an index of a column, or of a field inside one (``a.b``), and commit it.

        ``kind``: BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER or INVERTED, and ``parameters`` as those of
        `pennon.LanceDataset.create_scalar_index`, which has the same errors.  Executors index a share of the
        fragments each, and one merges what they made, a block at a time.

        Kinds of vectors (IVF_PQ, …) have the parameters of `pennon.LanceDataset.create_index`.  The driver trains
        on a sample of 1 GiB at most, executors code the rows, Spark shuffles the codes by partition, and
        executors write the partitions and let graphs grow.

        Without ``train`` the index covers no rows, until `optimizeIndices`.  ``progress`` is told how many tasks are
        done, of how many; a training counts for some.  Without one, a terminal shows a bar.

        >>> table.createIndex("key", "BTREE")
        >>> table.indices().first().name
        'key_idx'
        """
        check_text(column, "column")
        check_text(kind, "kind")
        check_flag(replace, "replace must be bool, got")
        check_flag(train, "train must be bool, got")
        with _shown(progress, f"index {column}") as told:
            create_index(
                self.snapshot(),
                column,
                kind,
                name,
                replace=replace,
                train=train,
                parameters=parameters,
                builder=SparkBuilder(self.spark, told),
            )

    def optimizeIndices(
        self: TableHandle,
        *names: str,
        numIndicesToMerge: int | None = None,
        retrain: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Add the rows that no index covers to all indices, or to those named.

        The arguments are those of `pennon.dataset.maintenance.DatasetOptimizer.optimize_indices`.

        >>> table.createIndex("key", "BTREE")
        >>> _ = pennon.spark.write(table.toDF(), path, mode="append")
        >>> table.optimizeIndices()
        >>> table.read(filter="key = 'a'").count()
        2
        """
        check_flag(retrain, "retrain must be bool, got")
        with _shown(progress, "optimize indices") as told:
            optimize_indices(
                self.snapshot(),
                num_indices_to_merge=numIndicesToMerge,
                index_names=names or None,
                retrain=retrain,
                builder=SparkBuilder(self.spark, told),
            )

    def dropIndex(self: TableHandle, name: str) -> None:
        """Drop an index; its files go at `vacuum`.  Raises IndexNotFoundError if there is none of that name.

        >>> table.createIndex("key", "BTREE")
        >>> table.dropIndex("key_idx")
        >>> table.indices().count()
        0
        """
        check_text(name, "name")
        drop_index(self.snapshot(), name)

    def indices(self: TableHandle) -> DataFrame:
        """Return the segments of all indices, and how many live rows each covers and does not cover.

        >>> table.createIndex("key", "BTREE")
        >>> [row.name for row in table.indices().collect()]
        ['key_idx']
        """
        snapshot = self.snapshot()
        manifest = snapshot.manifest
        rows = {each.id: live_row_count(snapshot, each) for each in manifest.fragments}
        names = {each.id: path for path, each in walk_paths(manifest.schema)}
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


def _shown(progress: Progress | None, what: str) -> AbstractContextManager[Progress | None]:
    """Give a callback, by default what shows a bar."""
    return bar(what) if progress is None else nullcontext(progress)
