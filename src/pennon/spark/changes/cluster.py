"""Putting rows in order on the executors: Spark carries blocks of rows from those who read to those who write.

::

    sample      run_tasks                        keys of some rows come to the driver
    split       mapInArrow                       number of a slice, block: rows as Arrow bytes
    shuffle     by file, sorted by slice         Spark's: spilled to disk, done again where an executor died
    gather      mapInArrow                       a task a file; its fragments come to the driver

Spark sees blocks and never their rows, so rows of any type go through as they are.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.ops.cluster.task import Clustering, GatherTask, SampleTask
from pennon.ops.compact.task import Rewritten
from pennon.spark.frames.scan import parallelism_of
from pennon.spark.messages import parse_fragments, serialize_fragments
from pennon.spark.run_tasks import blocks_of, run_on_rows, run_tasks, shuffled_blocks
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES
from pennon.spark.source.partitions import plan_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SampleShare:
    """Samples the share of a number; it pickles."""

    task: SampleTask

    def __call__(self, number: int) -> bytes:
        """See `pennon.spark.run_tasks.NumberedTask`."""
        return self.task.run(number)


@dataclass(frozen=True, slots=True)
class GatherFile:
    """Writes the blocks of a file, and says which fragments it became; it pickles."""

    task: GatherTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """See `pennon.spark.run_tasks.RowsTask`."""
        first: list[int] = []

        def blocks() -> Iterator[tuple[int, bytes]]:
            for number, block in blocks_of(batches):
                if not first:
                    first.append(number)
                yield number, block

        fragments = serialize_fragments(self.task.run(blocks()))
        return pickle.dumps((first, fragments))


def put_in_order(spark: SparkSession, plan: Clustering) -> Rewritten:
    """Write the rows of a plan in order, on the executors; nothing is committed."""
    read = plan.snapshot.at(replace(plan.snapshot.manifest, fragments=plan.fragments))
    shares = plan_partitions(read, DEFAULT_PARTITION_BYTES, parallelism_of(spark))
    version = plan.snapshot.manifest.version
    if not shares:
        return Rewritten(version, plan.fragments, (), keeps_order=False)
    count = len(shares)
    split = plan.split(shares, run_tasks(spark, SampleShare(plan.sample(shares)), count))
    blocks = shuffled_blocks(
        spark, split.run, count, targets=plan.files, per_target=plan.slices_per_file
    )
    messages = run_on_rows(blocks, GatherFile(plan.gather(split)))
    found = sorted(pickle.loads(message) for message in messages)  # noqa: S301 - of our executors
    new = [fragment for _, fragments in found for fragment in parse_fragments(fragments)]
    plan.check(new)
    return Rewritten(version, plan.fragments, tuple(new), keeps_order=False)
