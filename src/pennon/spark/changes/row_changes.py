"""Change rows by Spark: a DataFrame says what happens to each row, tasks write it, one commit publishes it.

::

    rows        address, clause, new values         of a condition or a join; Spark's plan
    shuffle     by fragment (address >> 32), sorted  a fragment belongs to one task, new rows to any;
                                                     none where whole fragments are read, and rows go
    tasks       deletion file of the fragment, new rows          `pennon.ops.rows.change_rows`
    driver      one commit

Only addresses and the values that change go through the shuffle.  Both files of a change come of one job:
rows that are never read twice cannot differ the second time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pennon.errors import FormatError, MatchError
from pennon.ops.columns.commits import commit_grown
from pennon.ops.commit import commit_on
from pennon.ops.rows.change_rows import ChangeTask
from pennon.ops.rows.changed_wire import Changed, parse_changed, serialize_changed
from pennon.ops.rows.deletion_vectors import Removals
from pennon.spark.changes.chosen_values import CLAUSE, table_values
from pennon.spark.frames.scan import ADDRESS, parallelism_of
from pennon.spark.names import quoted
from pennon.spark.pyspark_classes import VariantType
from pennon.spark.run_tasks import run_on_rows
from pennon.spark.task_errors import begun_anew, typed_errors
from pennon.table.operations import Update, UpdateMode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pennon.scan.snapshot import Snapshot
    from pennon.table.manifest import Manifest

_NEW_ROW_KEYS: Final = 1 << 20
_TASKS_OF_CORE: Final = 2
_TASK_ROWS: Final = 1 << 23
"""Rows of the table for each task where we say how many there are; it holds 8 bytes of those that change."""
_ADAPTS: Final = "spark.sql.adaptive.enabled"
_COALESCES: Final = "spark.sql.adaptive.coalescePartitions.enabled"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_OUR_NAMES: Final = re.compile(r", `__pennon_\w+`|`__pennon_\w+`, ")
"""Columns of ours among those that Spark proposes for a name that is none."""


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """Changes the rows of a partition, and says what came of it; it pickles."""

    to_bytes = staticmethod(serialize_changed)
    from_bytes = staticmethod(parse_changed)

    task: ChangeTask

    def run(self, batches: Iterator[pa.RecordBatch]) -> Changed:
        """Change the rows of the batches."""
        return self.task.run(self._changes(batch) for batch in batches if batch.num_rows)

    def _changes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        schema = self.task.values
        arrays = [batch.column(0), batch.column(1), *table_values(batch, schema)]
        return pa.RecordBatch.from_arrays(arrays, names=[ADDRESS, CLAUSE, *schema.names])


def run_changes(task: ChangeTask, rows: DataFrame, *, is_placed: bool = False) -> list[Changed]:
    """Change the rows of a DataFrame on the executors; nothing is committed.

    It has the columns `ADDRESS` (NULL: a new row), `CLAUSE`, and values for those of ``task.values``, as
    `pennon.spark.changes.chosen_values` names them.  ``is_placed``: it was read with all rows of a fragment in one
    partition, so nothing need be shuffled; where Spark moved them on the way (a subquery of a condition may be
    a join), they are shuffled after all.
    Raises MatchError if a row would change twice, and what Spark raises where a task fails.
    """
    if is_placed:
        changed = _run(task, rows)
        if not _is_split(changed):
            return changed
    owner = sf.shiftright(sf.col(ADDRESS), 32)
    spread = [sf.col(quoted(field.name)) for field in rows.schema.fields if _is_hashable(field)]
    if spread:
        number = sf.pmod(sf.xxhash64(*spread), sf.lit(_NEW_ROW_KEYS))
        owner = sf.coalesce(owner, sf.lit(-1) - number)
    changed = _run(task, _placed(task, rows, owner))
    if _is_split(changed):
        message = "rows of one fragment came to two tasks; nothing was committed"
        raise FormatError(message)
    return changed


def _run(task: ChangeTask, rows: DataFrame) -> list[Changed]:
    """Change rows, those of a fragment in one partition."""
    placed = rows.sortWithinPartitions(sf.col(ADDRESS).asc_nulls_last())
    with typed_errors(MatchError):
        return begun_anew(lambda: run_on_rows(placed, ApplyChanges(task), joins=True))


def _is_split(changed: Sequence[Changed]) -> bool:
    """Return whether two tasks changed rows of one fragment: each wrote a deletion file of its own."""
    owners = [each.fragment_id for one in changed for each in one.removals]
    return len(set(owners)) != len(owners)


def _placed(task: ChangeTask, rows: DataFrame, owner: Column) -> DataFrame:
    """Bring rows that have an owner in common to one task.

    Each task writes a file.  Adaptive execution puts small partitions together when it has seen how much
    is shuffled; without it there are as many tasks as the session has work for, not as it has partitions.
    """
    conf = rows.sparkSession.conf
    if conf.get(_ADAPTS) == conf.get(_COALESCES) == "true":
        return rows.repartition(owner)
    work = _TASKS_OF_CORE * parallelism_of(rows.sparkSession).most
    most = max(work, -(-task.snapshot.manifest.summary.physical_rows // _TASK_ROWS))
    return rows.repartition(min(most, int(str(conf.get(_PARTITIONS)))), owner)


def _is_hashable(field: st.StructField) -> bool:
    return field.name not in (ADDRESS, CLAUSE) and not _has_no_hash(field.dataType)


def _has_no_hash(kind: st.DataType) -> bool:
    """Return whether Spark has no hash of values of a type, for there is a map or a variant somewhere in it."""
    if isinstance(kind, st.StructType):
        return any(_has_no_hash(field.dataType) for field in kind.fields)
    if isinstance(kind, st.ArrayType):
        return _has_no_hash(kind.elementType)
    return isinstance(kind, (st.MapType, VariantType))


def change_operation(task: ChangeTask, changed: Sequence[Changed]) -> Update:
    """Return what the commit of changes will be."""
    removals = Removals.of(removal for each in changed for removal in each.removals)
    return Update(
        removals.gone,
        removals.updated,
        tuple(fragment for each in changed for fragment in each.new),
        fields_preserved=tuple(each.id for each in task.snapshot.manifest.schema.walk()),
        mode=UpdateMode.REWRITE_ROWS,
    )


def commit_changes(
    task: ChangeTask,
    changed: Sequence[Changed],
    properties: Mapping[str, str],
    *,
    planned_ns: int,
    adds_keys: bool = False,
    base: Snapshot | None = None,
) -> Manifest:
    """Commit changes; raises what `pennon.table.commit.loop.commit` raises.

    ``base``: the version as it is in the table, where the task has one with more columns, or wider ones.
    """
    operation = change_operation(task, changed)
    schema = task.snapshot.manifest.schema
    if base is not None and base.manifest.schema != schema:
        fragments = task.snapshot.manifest.fragments
        return commit_grown(base, operation, fragments, schema, properties, planned_ns=planned_ns)
    return commit_on(
        task.snapshot, operation, properties=properties, planned_ns=planned_ns, adds_keys=adds_keys
    )


def rows_of_clauses(changed: Iterable[Changed], clauses: int) -> list[int]:
    """Return how many rows each clause changed."""
    counts = [each.rows for each in changed]
    return [sum(rows[number] for rows in counts) for number in range(clauses)]


def analysed(
    build: Callable[[Sequence[str]], DataFrame], few: Sequence[str], every: Sequence[str]
) -> DataFrame:
    """Return a frame over the columns that it seems to need; over all, if Spark then misses one."""
    try:
        rows = build(few)
        rows.schema  # noqa: B018 - Connect analyses a plan when its schema is asked for
    except AnalysisException:
        return _analysed_by_users(build, every)
    return rows


def _analysed_by_users(
    build: Callable[[Sequence[str]], DataFrame], every: Sequence[str]
) -> DataFrame:
    """Return a frame over all columns; what Spark says of a name proposes no column of ours."""
    try:
        rows = build(every)
        rows.schema  # noqa: B018 - as above
    except AnalysisException as error:
        said = str(error)
        if _OUR_NAMES.search(said) is None:
            raise
        # Behind it stands the plan, which is ours.
        raise AnalysisException(_OUR_NAMES.sub("", said.partition(";\n")[0])) from error
    return rows
