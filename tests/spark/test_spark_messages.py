"""Errors for a misspelt column, and for a value of another type than DataFrame."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

import pennon.spark
from pennon.spark import LanceTable


@pytest.mark.parametrize("condition", ["kye = 'a'", "upper(kye) = 'A'"])
def test_misspelt_column_error_suggests_table_columns_only(
    table: LanceTable, condition: str
) -> None:
    calls = (
        lambda: table.delete(condition),
        lambda: table.update(condition, {"value": "1"}),
        lambda: table.count(condition),
    )
    for call in calls:
        with pytest.raises(AnalysisException, match=r"UNRESOLVED_COLUMN.*`key`") as caught:
            call()
        assert "__pennon" not in str(caught.value)
    assert table.count() == 4


def test_write_of_other_types_than_dataframe_is_refused(uri: str) -> None:
    with pytest.raises(TypeError, match="DataFrame of Spark, not a value of type list"):
        pennon.spark.write([1], uri)  # type: ignore[arg-type]
