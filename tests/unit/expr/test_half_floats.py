"""Half floats in expressions, new columns, updates and keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

HALF, DOUBLE = pa.float16(), pa.float64()
A = [1.5, -2.25, 0.0, None]
B = [2.0, 4.0, 0.5, 1.0]


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    rows = pa.table(
        {
            "id": range(4),
            "a": pa.array([None if n is None else np.float16(n) for n in A], HALF),
            "b": pa.array([np.float16(n) for n in B], HALF),
            "f": pa.array([1, 2, 3, 4], pa.float32()),
        }
    )
    return pennon.write_dataset(rows, str(tmp_path / "t"))


EXPRESSIONS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "a + b": (HALF, [3.5, 1.75, 0.5, None]),
    "a - b": (HALF, [-0.5, -6.25, -0.5, None]),
    "a * 2": (HALF, [3.0, -4.5, 0.0, None]),
    "a * 0.5": (HALF, [0.75, -1.125, 0.0, None]),
    "a / b": (HALF, [0.75, -0.5625, 0.0, None]),
    "b % 1.5": (HALF, [0.5, 1.0, 0.5, 1.0]),
    "a + id": (HALF, [1.5, -1.25, 2.0, None]),
    "a + f": (pa.float32(), [2.5, -0.25, 3.0, None]),
    "-a": (HALF, [-1.5, 2.25, -0.0, None]),
    "b * 60000": (HALF, [np.inf, np.inf, 30000.0, 60000.0]),
    "abs(a)": (HALF, [1.5, 2.25, 0.0, None]),
    "greatest(a, b)": (HALF, [2.0, 4.0, 0.5, 1.0]),
    "least(a, b)": (HALF, [1.5, -2.25, 0.0, 1.0]),
    "nullif(a, b)": (HALF, A),
    "nullif(b, b)": (HALF, [None] * 4),
    "round(a)": (DOUBLE, [2.0, -2.0, 0.0, None]),
    "round(a, 1)": (DOUBLE, [1.5, -2.3, 0.0, None]),
    "floor(a)": (DOUBLE, [1.0, -3.0, 0.0, None]),
    "ceil(a)": (DOUBLE, [2.0, -2.0, 0.0, None]),
    "trunc(a)": (DOUBLE, [1.0, -2.0, 0.0, None]),
    "sqrt(b)": (DOUBLE, [2.0**0.5, 2.0, 0.5**0.5, 1.0]),
    "signum(a)": (DOUBLE, [1.0, -1.0, 0.0, None]),
    "power(b, 2)": (DOUBLE, [4.0, 16.0, 0.25, 1.0]),
    "cbrt(b * 4)": (DOUBLE, [2.0, 16.0 ** (1 / 3), 2.0 ** (1 / 3), 4.0 ** (1 / 3)]),
    "iszero(a)": (pa.bool_(), [False, False, True, None]),
    "cast(a as string)": (pa.string(), ["1.5", "-2.25", "0", None]),
    "concat('x', b)": (pa.string(), ["x2", "x4", "x0.5", "x1"]),
    "cast(a as int)": (pa.int32(), [1, -2, 0, None]),
    "cast(a as decimal(5, 2))": (pa.decimal128(5, 2), ["1.50", "-2.25", "0.00", None]),
    "cast(a as double)": (DOUBLE, A),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_of_half_floats(table: pennon.LanceDataset, expression: str) -> None:
    """Sums and products stay half floats; functions of one number give 64-bit floats, as in pylance."""
    kind, values = EXPRESSIONS[expression]
    found = table.to_table(columns={"x": expression})["x"]
    assert found.type == kind
    shown = [
        str(v) if pa.types.is_decimal(kind) and v is not None else v for v in found.to_pylist()
    ]
    pairs = zip(shown, values, strict=True)
    if pa.types.is_floating(kind):
        assert all(v == w if w is None else v == pytest.approx(w, rel=1e-15) for v, w in pairs)
    else:
        assert shown == values


def test_texts_of_half_floats(tmp_path: Path) -> None:
    """Without an exponent, with the fewest digits of a 32-bit float."""
    numbers = np.array([65504, 0.1, 6e-8, -0.0, np.inf, -np.inf, np.nan], np.float16)
    rows = pa.table({"a": pa.array(numbers)})
    table = pennon.write_dataset(rows, str(tmp_path / "t"))
    texts = table.to_table(columns={"x": "cast(a as string)"})["x"].to_pylist()
    assert texts == ["65504", "0.099975586", "0.000000059604645", "-0", "inf", "-inf", "NaN"]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_half_floats_are_computed_into_columns(tmp_path: Path, version: str) -> None:
    rows = pa.table({"a": pa.array(np.array([1, 2, 3], np.float16)), "id": [1, 2, 3]})
    table = pennon.write_dataset(rows, str(tmp_path / "t"), data_storage_version=version)
    table.add_columns({"c": "a * 2", "d": "sqrt(a)"})
    table.update({"a": "c + 1"}, where="a * 2 > 2")
    found = table.to_table().sort_by("id")
    assert found["a"].to_pylist() == [1.0, 5.0, 7.0]
    assert (found["a"].type, found["c"].type, found["d"].type) == (HALF, HALF, DOUBLE)
    assert found["c"].to_pylist() == [2.0, 4.0, 6.0]


def test_merge_by_half_float_keys(tmp_path: Path) -> None:
    """Keys are equal as 32-bit floats are: NaN to NaN, and a NULL to none."""

    def rows(kind: pa.DataType, keys: list[Any], values: list[int]) -> pa.Table:
        numbers = [None if k is None else np.float16(k) for k in keys]
        return pa.table({"k": pa.array(numbers, HALF).cast(kind), "v": values})

    merged = []
    for kind in (HALF, pa.float32()):
        uri = str(tmp_path / str(kind))
        table = pennon.write_dataset(rows(kind, [1.5, 2.5, np.nan, None], [1, 2, 3, 4]), uri)
        merge = table.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows(kind, [2.5, np.nan, 7.0], [20, 30, 70]))
        merged.append(sorted(map(str, pennon.dataset(uri).to_table().to_pylist())))
        fragment = pennon.dataset(uri).get_fragments()[0]
        changed, _, *_ = fragment.update_columns(rows(kind, [1.5], [9]), "k")
        assert changed.num_rows
    assert merged[0] == merged[1]
    assert len(merged[0]) == 5
