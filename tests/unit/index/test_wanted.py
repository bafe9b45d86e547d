"""Values, lists and ranges of values of all types: indices find what a scan finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon

KINDS = [
    pa.int16(),
    pa.uint64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.duration("ms"),
    pa.float64(),
    pa.bool_(),
    pa.decimal128(30, 2),
    pa.string(),
    pa.large_binary(),
    pa.binary(3),
]


def values_of(kind: pa.DataType, rows: int) -> pa.Array:
    """Return values of a type, many of them twice; a third is NULL, the first ones among them."""
    random = np.random.default_rng(3)
    numbers = random.integers(0, 200, rows)
    numbers[:200] = 0
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.array([b"%03d" % n if n > 66 else None for n in numbers], kind)
    if pa.types.is_string(kind) or pa.types.is_large_binary(kind):
        texts = ["x" * (n % 40) + str(n) if n > 66 else None for n in numbers.tolist()]
        return pa.array(texts).cast(kind)
    found = pa.array(numbers, pa.int64(), mask=numbers < 67)
    if kind == pa.bool_():
        return pc.greater(found, 130)
    return found.cast(pa.int32()).cast(kind) if kind == pa.date32() else found.cast(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("index", ["BTREE", "ZONEMAP"])
def test_index_ranges_find_the_rows_of_a_scan(
    kind: pa.DataType, index: Any, tmp_path: Path
) -> None:
    table = pa.table({"v": values_of(kind, 3_000), "row": range(3_000)})
    made = pennon.write_dataset(table, tmp_path / "t", max_rows_per_file=1_100)
    size: dict[str, Any] = {"zone_size": 64} if index == "BTREE" else {"rows_per_zone": 64}
    made.create_scalar_index("v", index, **size)
    made.delete("row % 7 = 0")
    field, column = pc.field("v"), made.to_table()["v"]
    values = column.drop_null().take(pa.array([5, 17, 300, 900, 1400]))
    a, b, *rest = sorted(values.to_pylist())
    a, b = pa.scalar(a, kind), pa.scalar(b, kind)
    conditions = [
        field == a,
        field < a,
        field <= b,
        a < field,
        (field >= a) & (field < b),
        (field > a) & (field <= b),
        (field >= b) & (field <= a),
        (field > a) & (field > b),
        (field >= a) & (field != b),
        field.isin(pa.array([b.as_py(), *rest, None], kind)),
        field.isin(pa.array([a.as_py(), a.as_py()], kind)),
        field.isin(pa.array([], kind)),
        (field == a) & (field == b),
    ]
    for condition in conditions:
        asked = made.to_table(["row"], condition)
        read = made.scanner(["row"], condition, use_scalar_index=False).to_table()
        assert asked.equals(read), condition
