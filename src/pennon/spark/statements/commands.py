"""A statement that is understood: what it is about, and what runs it; and the results that commands have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import types as st

from pennon.errors import ArgumentError, UnsupportedError
from pennon.scan.snapshot import Snapshot
from pennon.spark.statements.pruning import qualifier_splices
from pennon.spark.statements.references import Reference
from pennon.spark.statements.session import Place, find_place
from pennon.spark.statements.tables import NEWEST, Target, table_at
from pennon.spark.statements.words import Cursor, Name, Statement, spliced
from pennon.spark.table.merge_builder import count_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.spark.table.lance_table import LanceTable


@dataclass(frozen=True, slots=True)
class Command:
    """A statement about a Lance table: ``title`` is the table, or what else it changes; ``detail`` what is done."""

    kind: str
    title: str
    detail: str
    run: Callable[[], DataFrame] = field(repr=False)


NAMESPACE_WORDS: Final = ("NAMESPACE", "SCHEMA", "DATABASE")
"""Spark's words for a namespace."""
Parse: TypeAlias = "Callable[[SparkSession, Statement], Command | None]"
"""Reads a statement; None if it is not about a Lance table."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A table that a command is about."""

    spark: SparkSession
    statement: Statement
    target: Target

    @property
    def title(self) -> str:
        """Return the table's name."""
        place = self.target.place
        return place.title if place.ref is None else f"{place.title}@{place.ref}"

    @property
    def full_name(self) -> tuple[str, ...]:
        """Return the name with its catalog and namespaces, which may stand before columns."""
        return self._reference.full_name

    @property
    def _reference(self) -> Reference:
        name = Name(self.target.name.parts, -1, -1)
        return Reference(name, self.target.place, NEWEST, self.target.alias, 0)

    @property
    def table(self) -> LanceTable:
        """Return the table; raises NotFoundError if there is none."""
        return table_at(self.spark, self.target.place)

    def command(self, kind: str, detail: str, run: Callable[[], DataFrame]) -> Command:
        """Return a command about the table."""
        return Command(kind, self.title, detail, run)

    def refused(self, reason: str) -> UnsupportedError:
        """Return the error for a statement that no Lance table can do."""
        return refused(self.statement, reason)

    def expression(self, text: str) -> str:
        """Return a condition or value in which the table's columns have no catalog before them."""
        found = Statement.of(text)
        return spliced(text, dict.fromkeys(qualifier_splices(found, self._reference)))


def refused(statement: Statement, reason: str) -> UnsupportedError:
    """Return the error for a statement that is understood, and cannot be done."""
    return UnsupportedError(f"{statement.title!r}: {reason}")


def needed_place(spark: SparkSession, name: Name, statement: Statement) -> Place:
    """Return the place of a Lance table.  Raises ArgumentError if no catalog has it."""
    found = find_place(spark, name)
    if found is None:
        message = f"{statement.title!r}: no catalog of this session has a Lance table {name}"
        raise ArgumentError(message)
    return found


def empty_frame(spark: SparkSession) -> DataFrame:
    """Return the result of a command that tells nothing, as Spark's are: no columns, no rows."""
    return spark.createDataFrame([], st.StructType([]))


def affected_frame(spark: SparkSession, inserted: int) -> DataFrame:
    """Return how many rows were inserted, as Delta does."""
    return count_frame(spark, [("num_affected_rows", inserted), ("num_inserted_rows", inserted)])


def new_rows(snapshot: Snapshot, before: Snapshot | None) -> int:
    """Return how many rows stand in fragments that a version has, and the one before has not."""
    old = set() if before is None else {each.id for each in before.manifest.fragments}
    return sum(
        each.physical_rows or 0 for each in snapshot.manifest.fragments if each.id not in old
    )


def text_frame(
    spark: SparkSession, names: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> DataFrame:
    """Return rows of text."""
    schema = st.StructType([st.StructField(name, st.StringType()) for name in names])
    return spark.createDataFrame([tuple(row) for row in rows], schema)


def cursor_after(statement: Statement, *keywords: str) -> Cursor:
    """Return a cursor behind the first words of a statement, which are some keywords."""
    cursor = Cursor(statement)
    cursor.needs(*keywords)
    return cursor
