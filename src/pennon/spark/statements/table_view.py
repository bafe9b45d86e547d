"""The part of a table that a query reads: columns, rows, or partial aggregates of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from pennon.spark.frames.aggregate import partial_frame
from pennon.spark.frames.found import found_frame
from pennon.spark.frames.scan import first_rows, frame_of, passing_rows, top_rows
from pennon.spark.source.options import ReadOptions
from pennon.spark.source.scan_task import arrow_schema_of
from pennon.spark.statements.grouping import Grouping
from pennon.spark.statements.matches import TextMatch
from pennon.spark.statements.pruning import FRAGMENT_ID, UsedColumns
from pennon.spark.statements.pushing import Pushed
from pennon.spark.statements.references import Reference
from pennon.spark.statements.words import Splice
from pennon.spark.types import ROW_ADDRESS, ROW_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Note:
    """A line of ``explain=True``: which part of a statement went where."""

    part: str
    where: str
    detail: str


@dataclass(frozen=True, slots=True)
class TableView:
    """The part of a table that a query reads; ``rows``: the most rows that it has, None: that is not known."""

    reference: Reference
    snapshot: Snapshot = field(repr=False)
    used: UsedColumns
    pushed: Pushed
    match: TextMatch | None = None
    grouping: Grouping | None = None
    rows: int | None = None

    @property
    def grouped_splices(self) -> tuple[Splice, ...]:
        """Return what merges partial aggregates, in the place of aggregates of rows."""
        return () if self.grouping is None else self.grouping.splices

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return the rows and columns as a DataFrame."""
        if self.grouping is not None:
            return self._grouped(spark, self.grouping)
        names = arrow_schema_of(self.snapshot).names
        system = [name for name in self.used.system if name not in names]
        options = ReadOptions(
            uri=self.snapshot.store.uri,
            columns=None if self.used.is_all else self.used.columns,
            with_row_id=ROW_ID in system,
            with_row_address=ROW_ADDRESS in system or FRAGMENT_ID in system,
        )
        rows = self._rows(spark, options)
        if FRAGMENT_ID not in system:
            return rows
        rows = rows.withColumn(FRAGMENT_ID, sf.shiftright(sf.col(ROW_ADDRESS), 32).cast("int"))
        return rows if ROW_ADDRESS in system else rows.drop(ROW_ADDRESS)

    def _grouped(self, spark: SparkSession, grouping: Grouping) -> DataFrame:
        options = ReadOptions(uri=self.snapshot.store.uri, columns=grouping.columns)
        where = self.pushed.predicate
        made = grouping.keys, grouping.parts, grouping.computed
        return partial_frame(spark, self.snapshot, options, where, *made)

    def _rows(self, spark: SparkSession, options: ReadOptions) -> DataFrame:
        pushed = self.pushed
        if self.match is not None:
            return found_frame(spark, self.snapshot, self.match.options(options))
        if pushed.limit is not None:
            return first_rows(spark, self.snapshot, options, pushed.limit, pushed.predicate)
        if pushed.top is not None:
            return top_rows(spark, self.snapshot, options, pushed.top, pushed.predicate)
        if pushed.predicate is not None:
            return passing_rows(spark, self.snapshot, options, pushed.predicate, self.rows)
        return frame_of(spark, self.snapshot, options)

    def note(self, *, is_answer: bool) -> Note:
        """Return the line of ``explain=True``."""
        columns = "all columns" if self.used.is_all else f"columns {', '.join(self.used.columns)}"
        shown = [f"version {self.snapshot.manifest.version}", *([] if is_answer else [columns])]
        if self.grouping is not None and not is_answer:
            shown[-1] = str(self.grouping)
        if self.used.system:
            shown.append(f"row columns {', '.join(self.used.system)}")
        if self.match is not None:
            shown.append(f"full-text search {self.match.query!r}")
        if self.pushed.texts:
            shown.append(f"filter {' AND '.join(self.pushed.texts)}")
        if self.pushed.limit is not None:
            shown.append(f"limit {self.pushed.limit}")
        if self.pushed.top is not None:
            shown.append(str(self.pushed.top))
        return Note(f"table {self.reference.place.title}", "scan", "; ".join(shown))
