"""Tables of words, sums of what they say, and heaps, beside plain twins; arguments that are refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.encoding.kernels.vector_scan import keep_nearest, looked_up, word_tables

Floats = npt.NDArray[np.float32]


@pytest.mark.parametrize("parts", [1, 3, 4, 9])
@pytest.mark.parametrize("width", [1, 2, 8])
@pytest.mark.parametrize("count", [16, 256])
def test_tables_of_words(parts: int, width: int, count: int) -> None:
    rng = np.random.default_rng(parts * width)
    words = rng.normal(size=(parts, width, count)).astype(np.float32)
    query = rng.normal(size=parts * width).astype(np.float32)
    tables = np.full((parts, count), np.nan, np.float32)
    asked = query.reshape(parts, width, 1).astype(np.float64)
    word_tables(words, query, products=False, tables=tables)
    np.testing.assert_allclose(tables, ((asked - words) ** 2).sum(axis=1), rtol=1e-5)
    word_tables(words, query, products=True, tables=tables)
    np.testing.assert_allclose(tables, 1 - (asked * words).sum(axis=1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("many", [0, 1, 3, 4, 5, 16])
@pytest.mark.parametrize("rows", [0, 1, 31, 1023, 1024, 1025, 3000])
def test_sums_of_tables(many: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(0, 256, (many, rows), np.uint8)
    tables = rng.normal(size=(many, 256)).astype(np.float32)
    out = np.full(rows, np.nan, np.float32)
    looked_up(codes, tables, 2.5, out)
    expected = np.full(rows, 2.5, np.float32)
    for each, table in zip(codes, tables, strict=True):
        expected += table[each]
    assert out.tolist() == expected.tolist()


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, np.inf, np.nan]), max_size=200),
    st.integers(1, 20),
    st.integers(1, 70),
    st.randoms(use_true_random=False),
)
def test_the_nearest_are_kept(distances: list[float], most: int, step: int, rng: object) -> None:
    rows = list(range(len(distances)))
    rng.shuffle(rows)  # type: ignore[attr-defined]
    passing = [row % 3 != 1 for row in rows]
    best, best_rows, count = np.empty(most, np.float32), np.empty(most, np.uint64), 0
    for at in range(0, len(rows), step):
        count = keep_nearest(
            best,
            best_rows,
            count,
            np.array(distances[at : at + step], np.float32),
            np.array(rows[at : at + step], np.uint64),
            np.array(passing[at : at + step], np.uint8),
        )
    found = sorted(zip(best[:count].tolist(), best_rows[:count].tolist(), strict=True))
    pairs = zip(distances, rows, passing, strict=True)
    assert found == sorted((d, row) for d, row, passes in pairs if passes and d == d)[:most]  # noqa: PLR0124 - is no NaN


def test_arrays_that_do_not_fit_are_refused() -> None:
    one, rows = np.zeros(1, np.float32), np.zeros(1, np.uint64)
    with pytest.raises(ValueError, match="a heap"):
        keep_nearest(one, rows, 2, one, rows, None)
    with pytest.raises(ValueError, match="a heap"):
        keep_nearest(one[:0], rows[:0], 0, one, rows, None)
    with pytest.raises(ValueError, match="each row"):
        keep_nearest(one, rows, 0, one, rows[:0], None)
    with pytest.raises(ValueError, match="each row"):
        keep_nearest(one, rows, 0, one, rows, np.zeros(2, np.uint8))
    tables = np.zeros((2, 256), np.float32)
    with pytest.raises(ValueError, match="codes have"):
        looked_up(np.zeros((2, 5), np.uint8), tables, 0, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="codes have"):
        looked_up(np.zeros((3, 5), np.uint8), tables, 0, np.zeros(5, np.float32))
    with pytest.raises(ValueError, match="codes have"):
        looked_up(
            np.zeros((2, 5), np.uint8), np.zeros((2, 16), np.float32), 0, np.zeros(5, np.float32)
        )
    words = np.zeros((2, 3, 16), np.float32)
    for query, shape in ((5, (2, 16)), (6, (2, 15)), (6, (3, 16))):
        with pytest.raises(ValueError, match="a table"):
            word_tables(
                words,
                np.zeros(query, np.float32),
                products=False,
                tables=np.zeros(shape, np.float32),
            )
