"""Sort rows on the executors: Spark shuffles blocks of rows from reading tasks to writing tasks.

::

    sample      run_tasks                        keys of some rows come to the driver
    split       mapInArrow                       number of a slice, block: rows as Arrow bytes
    shuffle     by file, sorted by slice         Spark's: spilled to disk, done again where an executor died
    gather      mapInArrow                       a task a file; its fragments come to the driver

Spark sees blocks and never their rows, so rows of any type go through as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pennon.ops.cluster.task import Clustering
from pennon.ops.compact.task import Rewritten
from pennon.spark.frames.scan import parallelism_of
from pennon.spark.run_tasks import run_on_blocks, run_tasks, shuffled_blocks
from pennon.spark.source.options import DEFAULT_PARTITION_BYTES
from pennon.spark.source.partitions import plan_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put_in_order(spark: SparkSession, plan: Clustering) -> Rewritten:
    """Write the rows of a plan in order, on the executors; nothing is committed."""
    read = plan.snapshot.at(replace(plan.snapshot.manifest, fragments=plan.fragments))
    shares = plan_partitions(read, DEFAULT_PARTITION_BYTES, parallelism_of(spark))
    version = plan.snapshot.manifest.version
    if not shares:
        return Rewritten(version, plan.fragments, (), keeps_order=False)
    count = len(shares)
    split = plan.split(shares, run_tasks(spark, plan.sample(shares), count))
    blocks = shuffled_blocks(
        spark, split, count, targets=plan.files, per_target=plan.slices_per_file
    )
    files = run_on_blocks(blocks, plan.gather(split))
    files.sort(key=lambda file: -1 if file.first_slice is None else file.first_slice)
    new = [fragment for file in files for fragment in file.fragments]
    plan.check(new)
    return Rewritten(version, plan.fragments, tuple(new), keeps_order=False)
