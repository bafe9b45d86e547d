"""Values of several clauses for one column, in the types that Spark gave them, as the column holds them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.spark.changes.chosen_values import CLAUSE, table_values

SCHEMA = pa.schema(
    [("v", pa.int64()), ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])), ("0_v", pa.string())]
)  # fmt: skip


def test_chosen_values_have_the_type_of_the_column() -> None:
    batch = pa.record_batch(
        {
            CLAUSE: pa.array([0, 1, 2, 0, 3], pa.int32()),
            "__pennon_0_3:v": pa.array([2**53 + 1, None, None, None, 7], pa.int64()),
            "__pennon_1:v": pa.array([None, 2.0, None, None, None]),
            "__pennon_2:v": pa.array([None, None, 5, None, None], pa.int8()),
            "s": pa.array([{"b": "x", "A": 1}, None, {"b": None, "A": 2}, None, None]),
            "__pennon_0_3:0_v": ["p", None, None, "s", "t"],
            "__pennon_1_2:0_v": pa.array([None, "q", "r", None, None], pa.large_string()),
        }
    )
    values, structs, texts = table_values(batch, SCHEMA)
    assert [each.type for each in (values, structs, texts)] == SCHEMA.types
    assert values.to_pylist() == [2**53 + 1, 2, 5, None, 7]
    assert structs.to_pylist()[:3] == [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]
    assert texts.to_pylist() == ["p", "q", "r", "s", "t"]


def test_chosen_values_of_dictionary_columns() -> None:
    schema = pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])
    batch = pa.record_batch(
        {
            CLAUSE: pa.array([0, 1], pa.int32()),
            "__pennon_0:d": ["x", None],
            "__pennon_1:d": pa.array([None, "y"], pa.large_string()),
        }
    )
    assert table_values(batch, schema)[0].to_pylist() == ["x", "y"]


def test_chosen_value_of_other_type_error_names_the_column() -> None:
    batch = pa.record_batch(
        {CLAUSE: pa.array([0], pa.int32()), "__pennon_0:v": [1.5], "__pennon_1:v": pa.nulls(1)}
    )
    with pytest.raises(ArgumentError, match="column 'v' cannot become int64"):
        table_values(batch, pa.schema([("v", pa.int64())]))
