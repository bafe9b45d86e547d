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
@pytest.mark.parametrize("count", [7, 16, 256])
def test_tables_of_words(parts: int, width: int, count: int) -> None:
    rng = np.random.default_rng(parts * width)
    words = rng.normal(size=(parts, width, count)).astype(np.float32)
    queries = rng.normal(size=(3, parts * width)).astype(np.float32)
    tables = np.full((3, parts, count), np.nan, np.float32)
    asked = queries.reshape(3, parts, width, 1).astype(np.float64)
    word_tables(words, queries, products=False, tables=tables)
    np.testing.assert_allclose(tables, ((asked - words) ** 2).sum(axis=2), rtol=1e-5)
    word_tables(words, queries, products=True, tables=tables)
    np.testing.assert_allclose(tables, 1 - (asked * words).sum(axis=2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("many", [0, 1, 3, 4, 5, 16])
@pytest.mark.parametrize("rows", [0, 1, 31, 1023, 1024, 1025, 3000])
def test_sums_of_tables(many: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(0, 256, (many, rows), np.uint8)
    tables = rng.normal(size=(2, many, 256)).astype(np.float32)
    out = np.full((2, rows), np.nan, np.float32)
    looked_up(codes, tables, 2.5, out)
    expected = np.full((2, rows), 2.5, np.float32)
    for part, each in enumerate(codes):
        expected += tables[:, part, each]
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
    best, best_rows = np.empty((3, most), np.float32), np.empty((3, most), np.uint64)
    counts = np.zeros(3, np.int64)
    for at in range(0, len(rows), step):
        some = distances[at : at + step]
        keep_nearest(
            best,
            best_rows,
            counts,
            np.array([2, 0], np.int64),
            np.array([some, [-each for each in some]], np.float32),
            np.array(rows[at : at + step], np.uint64),
            np.array(passing[at : at + step], np.uint8),
        )
    for heap, sign in ((2, 1), (0, -1)):
        count = counts[heap]
        kept = best[heap, :count].tolist(), best_rows[heap, :count].tolist()
        pairs = zip(distances, rows, passing, strict=True)
        right = sorted((sign * d, row) for d, row, passes in pairs if passes and d == d)  # noqa: PLR0124 - is no NaN
        assert sorted(zip(*kept, strict=True)) == right[:most]
    assert counts[1] == 0


def test_arrays_that_do_not_fit_are_refused() -> None:
    one, row, none = np.zeros((1, 1), np.float32), np.zeros(1, np.uint64), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="a heap"):
        keep_nearest(one[:, :0], row[None, :0], none, none, one, row, None)
    with pytest.raises(ValueError, match="a heap"):
        keep_nearest(one, np.zeros((2, 1), np.uint64), none, none, one, row, None)
    with pytest.raises(ValueError, match="a heap"):
        keep_nearest(one, row[None], none[:0], none, one, row, None)
    for counts, numbers in (([2], [0]), ([-1], [0]), ([0], [1]), ([0], [-1])):
        with pytest.raises(ValueError, match="each query"):
            keep_nearest(
                one,
                row[None],
                np.array(counts, np.int64),
                np.array(numbers, np.int64),
                one,
                row,
                None,
            )
    with pytest.raises(ValueError, match="each row"):
        keep_nearest(one, row[None], none, none, one, row[:0], None)
    with pytest.raises(ValueError, match="each row"):
        keep_nearest(one, row[None], none, none[:0], one, row, None)
    with pytest.raises(ValueError, match="each row"):
        keep_nearest(one, row[None], none, none, one, row, np.zeros(2, np.uint8))
    tables, sums = np.zeros((3, 2, 256), np.float32), np.zeros((3, 5), np.float32)
    for codes, given_tables, out in (
        ((2, 5), tables, sums[:, :4].copy()),
        ((2, 5), tables, sums[:2]),
        ((3, 5), tables, sums),
        ((2, 5), tables[:, :, :16].copy(), sums),
    ):
        with pytest.raises(ValueError, match="codes have"):
            looked_up(np.zeros(codes, np.uint8), given_tables, 0, out)
    words = np.zeros((2, 3, 16), np.float32)
    for query, shape in (
        ((1, 5), (1, 2, 16)),
        ((1, 6), (1, 2, 15)),
        ((1, 6), (1, 3, 16)),
        ((2, 6), (1, 2, 16)),
    ):
        with pytest.raises(ValueError, match="a table"):
            word_tables(
                words,
                np.zeros(query, np.float32),
                products=False,
                tables=np.zeros(shape, np.float32),
            )
