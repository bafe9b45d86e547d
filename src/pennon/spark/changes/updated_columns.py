"""The columns that an update sets, of the rows that it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pyarrow as pa
from pyspark.sql import functions as sf

from pennon.schema.arrow import schema_to_arrow
from pennon.spark.changes.assignments import TableNames, Values, assigned_columns, assigned_values
from pennon.spark.changes.chosen_values import CLAUSE, choose_values
from pennon.spark.names import quoted
from pennon.spark.session import is_case_sensitive
from pennon.spark.source.conditions import Condition, columns_named, system_columns_named
from pennon.spark.source.table_fit import FitRule
from pennon.spark.types import spark_schema
from pennon.table.storage_version import storage_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class UpdatedColumns:
    """Values by the columns of a table; none of them in a delete."""

    said: Mapping[str, Condition]
    values: Mapping[str, Values]
    table: TableNames
    arrow: pa.Schema
    rule: FitRule

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        snapshot: Snapshot,
        values: Mapping[str, Condition],
        alias: str | None,
    ) -> Self:
        """Return what an update sets.  Raises ArgumentError for columns that are none, or set twice."""
        arrow = schema_to_arrow(snapshot.manifest.schema)
        shown, cases = spark_schema(arrow), is_case_sensitive(spark)
        table = TableNames(shown, shown, alias, cases)
        version = storage_version(snapshot.manifest)
        rule = FitRule(version, case_sensitive=cases, assigns=True)
        return cls(values, assigned_values(values, table), table, arrow, rule)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns that get a value."""
        return tuple(self.values)

    def columns_needed(self, conditions: Sequence[Condition]) -> tuple[list[str], list[str]]:
        """Return the columns that values and conditions seem to name, and all that they can name."""
        said = [*self.said.values(), *(each for each in self.said if "." in each), *conditions]
        names, alias = self.arrow.names, self.table.alias
        system = system_columns_named(said, names, alias)
        return [*columns_named(said, names, alias), *system], [*names, *system]

    def chosen(self, rows: DataFrame) -> DataFrame:
        """Return the values of rows that have the table's columns, and their addresses."""
        values = assigned_columns(self.values, self.table, lambda name: rows[quoted(name)])
        marked = rows.withColumn(CLAUSE, sf.lit(0))
        return choose_values(marked, self.arrow, [values], self.rule)
