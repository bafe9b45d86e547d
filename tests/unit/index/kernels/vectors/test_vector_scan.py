"""Tables of words, their sums, and heaps, beside plain twins; arguments that are refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.index.kernels.vectors.vector_scan import (
    join_heaps,
    keep_nearest,
    keep_words,
    sort_heaps,
    word_tables,
)
from tests.unit.index.kernels.vectors.heaps import Asked

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


@pytest.mark.parametrize("many", [1, 3, 4, 5, 16])
@pytest.mark.parametrize("count", [16, 256])
@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("most", [1, 10, 5000])
def test_the_nearest_of_words(many: int, count: int, products: bool, most: int) -> None:
    rng = np.random.default_rng([many, count])
    parts = many if count == 256 else 2 * many
    words = rng.normal(size=(parts, 3, count)).astype(np.float32)
    vectors = rng.normal(size=(4, parts * 3)).astype(np.float32)
    asked = Asked(rng, [0, 1, 31, 1023, 1024, 3000], queries=4, heaps=3, most=most)
    codes = [rng.integers(0, 256, (many, len(rows)), np.uint8) for rows in asked.rows]
    near = rng.normal(size=(6, parts * 3)).astype(np.float32) if most == 10 else None
    keep_words(codes, *asked.pairs, words, vectors, near, products, 2.5, *asked.heaps)  # type: ignore[call-arg]

    def far(part: int, query: int) -> npt.NDArray[np.float64]:
        tables = np.empty((4, parts, count), np.float32)
        word_tables(words, vectors if near is None else vectors - near[part], products, tables)
        found = np.full(len(asked.rows[part]), 2.5)
        for at, each in enumerate(codes[part]):
            if count == 256:
                found += tables[query, at, each]
            else:
                found += tables[query, 2 * at, each & 15] + tables[query, 2 * at + 1, each >> 4]
        return found

    asked.check(far)


def summed(tables: Floats, codes: npt.NDArray[np.uint8], start: float) -> Floats:
    """Add up what tables say of the words of rows, from the first to the last."""
    found = np.full(codes.shape[1], start, np.float32)
    for table, words in zip(tables, codes, strict=True):
        with np.errstate(invalid="ignore"):
            found = found + table[words]
    return found


@pytest.mark.parametrize(
    "how", ["plain", "ties", "equal", "no numbers", "infinite", "huge", "tiny"]
)
@pytest.mark.parametrize("many", [1, 4, 16, 300])
@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize("most", [1, 10, 300])
def test_nearest_words_equal_full_distances(how: str, many: int, products: bool, most: int) -> None:
    rng = np.random.default_rng([many, most])
    words = rng.normal(size=(many, 3, 256)).astype(np.float32)
    vectors = rng.normal(size=(4, many * 3)).astype(np.float32)
    if how == "ties":
        words, vectors = np.trunc(words), np.trunc(vectors)
    elif how == "equal":
        words[:], vectors[1:] = 1, 1
    elif how == "no numbers":
        words[0, :, ::3], vectors[1, 0] = np.nan, np.nan
    elif how == "infinite":
        words[0, :, 5], vectors[1, -1] = np.inf, np.inf
    elif how == "huge":
        words, vectors = words * np.float32(1e15), vectors * np.float32(1e15)
    elif how == "tiny":
        words, vectors = words * np.float32(1e-15), vectors * np.float32(1e-15)
    asked = Asked(rng, [0, 31, 64, 129, 1024, 2000], queries=4, heaps=4, most=most)
    asked.ends, asked.numbers = np.arange(4, 28, 4), np.tile(np.arange(4), 6)
    asked.places = asked.numbers.copy()
    codes = [rng.integers(0, 256, (many, len(rows)), np.uint8) for rows in asked.rows]
    keep_words(codes, *asked.pairs, words, vectors, None, products, 0.5, *asked.heaps)  # type: ignore[call-arg]
    tables = np.empty((4, many, 256), np.float32)
    word_tables(words, vectors, products, tables)
    for heap in range(4):
        right = sorted(
            (distance, row)
            for its, ids, mask in zip(codes, asked.rows, asked.passing, strict=True)
            for at, (distance, row) in enumerate(
                zip(summed(tables[heap], its, 0.5).tolist(), ids.tolist(), strict=True)
            )
            if not np.isnan(distance) and (mask is None or mask[at])
        )
        distances, numbers, counts = asked.heaps
        count = counts[heap]
        found = zip(distances[heap, :count].tolist(), numbers[heap, :count].tolist(), strict=True)
        assert sorted(found) == right[:most]


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, -1.0, np.inf, np.nan]), max_size=200),
    st.integers(1, 20),
    st.integers(1, 70),
    st.randoms(use_true_random=False),
)
def test_heaps_hold_the_nearest_rows(
    distances: list[float], most: int, step: int, rng: object
) -> None:
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
    heaps = [
        sorted(zip(best[h, : counts[h]], best_rows[h, : counts[h]], strict=True)) for h in range(3)
    ]
    sort_heaps(best, best_rows, counts)
    for heap, right in enumerate(heaps):
        its = best[heap, : counts[heap]], best_rows[heap, : counts[heap]]
        assert list(zip(*its, strict=True)) == right


def test_heaps_and_word_tables_with_wrong_arrays_are_refused() -> None:
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
    with pytest.raises(ValueError, match="a heap"):
        sort_heaps(one, row[None][:0], none)
    with pytest.raises(ValueError, match="of both"):
        join_heaps(one, row[None], none, none, one[:0], row[None][:0], none[:0])
    with pytest.raises(ValueError, match="a heap"):
        join_heaps(one, row[None], none, none, one, row[None][:0], none)
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


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("parts", [np.zeros((3, 5), np.uint8)], "a partition has a code"),
        ("parts", [np.zeros((2, 4), np.uint8)], "a partition has a code"),
        ("rows", [], "a partition has numbers"),
        ("passing", [], "a partition has numbers"),
        ("passing", [np.zeros(4, np.uint8)], "a partition has a code"),
        ("ends", np.array([2]), "each pair"),
        ("ends", np.array([-1]), "each pair"),
        ("ends", np.array([0, 1]), "each pair"),
        ("numbers", np.array([1]), "each pair"),
        ("numbers", np.array([-1]), "each pair"),
        ("places", np.array([3]), "each pair"),
        ("places", np.array([0, 0]), "each pair"),
        ("words", np.zeros((2, 3, 16), np.float32), "a partition has a code"),
        ("words", np.zeros((2, 3, 100), np.float32), "vectors have"),
        ("words", np.zeros((2, 4, 256), np.float32), "vectors have"),
        ("vectors", np.zeros((3, 5), np.float32), "vectors have"),
        ("near", np.zeros((1, 5), np.float32), "vectors have"),
        ("near", np.zeros((2, 6), np.float32), "vectors have"),
        ("counts", np.array([2]), "each query"),
        ("best", np.zeros((1, 0), np.float32), "a heap"),
    ],
)
def test_keep_words_with_wrong_arrays_is_refused(name: str, value: object, why: str) -> None:
    good: dict[str, object] = {
        "parts": [np.zeros((2, 5), np.uint8)],
        "rows": [np.zeros(5, np.uint64)],
        "passing": [None],
        "ends": np.array([1]),
        "numbers": np.array([0]),
        "places": np.array([2]),
        "words": np.zeros((2, 3, 256), np.float32),
        "vectors": np.zeros((3, 6), np.float32),
        "near": np.zeros((1, 6), np.float32),
        "products": False,
        "start": 0,
        "best": np.zeros((1, 1), np.float32),
        "best_rows": np.zeros((1, 1), np.uint64),
        "counts": np.array([0]),
    }
    keep_words(*good.values())  # type: ignore[arg-type]
    good["counts"] = np.array([0])
    with pytest.raises(ValueError, match=why):
        keep_words(*(good | {name: value}).values())  # type: ignore[arg-type]


def test_heaps_are_joined() -> None:
    best, rows = np.array([[5, 1], [9, 9]], np.float32), np.array([[50, 10], [7, 8]], np.uint64)
    counts = np.array([2, 0])
    others, other_rows = np.array([[4], [6]], np.float32), np.array([[40], [60]], np.uint64)
    join_heaps(best, rows, counts, np.arange(2), others, other_rows, np.array([1, 1]))
    assert sorted(zip(best[0].tolist(), rows[0].tolist(), strict=True)) == [(1, 10), (4, 40)]
    assert (best[1, 0], rows[1, 0], counts.tolist()) == (6, 60, [2, 1])
    join_heaps(best, rows, counts, np.array([1]), others[:1] - 1, other_rows[:1], np.array([1]))
    assert sorted(zip(best[1].tolist(), rows[1].tolist(), strict=True)) == [(3, 40), (6, 60)]
    for numbers in (np.array([2, 0]), np.array([0, -1]), np.array([0])):
        with pytest.raises(ValueError, match="of both"):
            join_heaps(best, rows, counts, numbers, others, other_rows, np.array([1, 1]))
