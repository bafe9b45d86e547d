"""Turns, tables of signs and estimates of RQ, beside plain twins; arguments that are refused."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from pennon.index.kernels.vectors.rabit import (
    RabitParts,
    RabitRows,
    keep_estimates,
    pairs_apart,
    sign_tables,
    turn,
)
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from pennon.index.vector.quantizers.rq_bits import blocked, packed_signs, stored_width

Floats = npt.NDArray[np.float32]


def turned_plainly(vectors: Floats, flips: Floats) -> npt.NDArray[np.float64]:
    width = vectors.shape[1]
    size = 1 << (width.bit_length() - 1)
    transform: npt.NDArray[Any] = np.ones((1, 1))
    while len(transform) < size:
        transform = np.kron([[1, 1], [1, -1]], transform)
    found = vectors.astype(np.float64)
    for number in range(4):
        found = found * flips[number]
        part = slice(width - size, width) if number % 2 else slice(0, size)
        found[:, part] = found[:, part] @ transform / np.sqrt(size)
        if size != width:
            low, high = found[:, : width // 2], found[:, width // 2 :]
            found = np.concatenate([low + high, low - high], axis=1)
    return found if size == width else found / 4


@pytest.mark.parametrize("width", [1, 2, 6, 8, 24, 104, 128])
def test_rabit_rotation_equals_the_twin(width: int) -> None:
    rng = np.random.default_rng(width)
    vectors = rng.normal(size=(5, width)).astype(np.float32)
    flips = rng.choice([-1, 1], (4, width)).astype(np.float32)
    turned = vectors.copy()
    turn(turned, flips)
    np.testing.assert_allclose(turned, turned_plainly(vectors, flips), 1e-5, 1e-5)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 128])
def test_vectors_are_turned_step_by_step(width: int) -> None:
    rng = np.random.default_rng(width)
    vectors = (rng.normal(size=(40, width)) * 10.0 ** rng.uniform(-30, 10, (40, 1))).astype(
        np.float32
    )
    vectors[0], vectors[1] = 0, -0.0
    flips = rng.choice([-1, 1], (4, width)).astype(np.float32)
    expected = vectors.copy()
    for flip in flips:
        expected *= flip
        step = 1
        while step < width:
            pairs = expected.reshape(len(expected), -1, 2, step)
            first, second = pairs[:, :, 0], pairs[:, :, 1]
            expected = np.stack([first + second, first - second], axis=2).reshape(vectors.shape)
            step *= 2
        expected *= np.float32(1 / np.sqrt(width))
    turn(vectors, flips)
    assert vectors.tobytes() == expected.tobytes()


def tables_of(turned: Floats) -> tuple[npt.NDArray[np.uint8], Floats]:
    count, width = turned.shape
    tables = np.full((count, width // 4, 16), 99, np.uint8)
    ranges = np.full((count, 2), np.nan, np.float32)
    sign_tables(turned, tables, ranges)
    return tables, ranges


@pytest.mark.parametrize("width", [8, 24, 128])
@pytest.mark.parametrize("size", [1e-40, 1e-31, 1e-20, 1, 1e30])
def test_tables_round_to_half_a_step(width: int, size: float) -> None:
    rng = np.random.default_rng(width)
    turned = (rng.normal(size=(4, width)) * size).astype(np.float32)
    turned[3] = 0
    tables, ranges = tables_of(turned)
    signs = rng.integers(0, 2, (50, width))
    fours = signs.reshape(50, -1, 4) @ np.array([1, 2, 4, 8])
    for query, table, (least, step) in zip(turned, tables, ranges.tolist(), strict=True):
        sums = table[np.arange(width // 4), fours].sum(axis=1, dtype=np.int64)
        exact = (signs - 0.5) @ query.astype(np.float64)
        reach = np.abs(query).sum(dtype=np.float64)
        assert np.abs(least + step * sums - exact).max() <= step * width / 8 + 1e-6 * reach
        assert step <= reach / 100 or size < 1e-30


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_values_too_large_for_tables(value: float) -> None:
    turned = np.full((1, 8), value, np.float32)
    tables, ranges = tables_of(turned)
    assert not tables.any()
    assert ranges[0, 1] == np.inf


@pytest.mark.parametrize("width", [4, 24, 128])
@pytest.mark.parametrize("is_by_residual", [False, True])
def test_rabit_distances_of_queries_and_centroids(width: int, is_by_residual: bool) -> None:
    rng = np.random.default_rng(width)
    queries = rng.normal(size=(3, width)).astype(np.float32)
    centroids = rng.normal(size=(4, width)).astype(np.float32)
    centroids[3] = 0
    numbers, partitions = np.array([2, 0, 1, 2]), np.array([1, 3, 0, 2])
    a, b = queries[numbers].astype(np.float64), centroids[partitions].astype(np.float64)
    squares, products, norms = ((a - b) ** 2).sum(1), (a * b).sum(1), (b * b).sum(1)

    def apart(*, is_product: bool) -> Floats:
        found = np.empty((4, 3), np.float32)
        pairs_apart(queries, centroids, numbers, partitions, is_product, is_by_residual, found)
        return found

    share: Any = np.ones(4)
    near = np.stack([share, squares, np.sqrt(squares)], axis=1)
    np.testing.assert_allclose(apart(is_product=False), near, 1e-5, 1e-5)
    near[:, 1] = -products
    if not is_by_residual:
        near[:, 0] = products / np.where(norms == 0, 1, norms)
        near[:, 1] = 1 - products - near[:, 0]
    np.testing.assert_allclose(apart(is_product=True), near, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("queries", np.zeros((3, 6), np.float32), "as many values"),
        ("queries", np.zeros((3, 4), np.float32), "as many values"),
        ("queries", np.zeros((0, 8), np.float32), "a query and a centroid"),
        ("centroids", np.zeros((1, 8), np.float32), "a query and a centroid"),
        ("numbers", np.array([0, 3]), "a query and a centroid"),
        ("numbers", np.array([0]), "as many values"),
        ("partitions", np.array([0, -1]), "a query and a centroid"),
        ("apart", np.zeros((2, 2), np.float32), "as many values"),
        ("apart", np.zeros((1, 3), np.float32), "as many values"),
    ],
)
def test_rabit_pairs_with_wrong_arrays_are_refused(name: str, value: Any, why: str) -> None:
    good: dict[str, Any] = {
        "queries": np.zeros((3, 8), np.float32),
        "centroids": np.zeros((2, 8), np.float32),
        "numbers": np.array([0, 2]),
        "partitions": np.array([1, 0]),
        "is_product": True,
        "is_by_residual": False,
        "apart": np.zeros((2, 3), np.float32),
    }
    pairs_apart(**good)
    with pytest.raises(ValueError, match=why):
        pairs_apart(**good | {name: value})


class Rows:
    """Rows and queries of RQ, and what is to be said of them."""

    def __init__(self, count: int, width: int, bits: int, *, has_errors: bool = True) -> None:
        rng = np.random.default_rng([count, width, bits])
        self.bits, self.width = bits, width
        self.signs = rng.integers(0, 256, (count, width // 8), np.uint8)
        self.codes = rng.integers(0, 1 << bits, (count, width if bits else 0), np.uint8)
        self.stored = packed_signs(self.signs)
        self.rest = np.zeros((count, 0), np.uint8)
        if bits:
            self.rest = blocked(self.codes, bits)
        factors = 2 + 2 * bool(bits) + (bits > 0 and has_errors)
        self.factors = rng.normal(size=(factors, count)).astype(np.float32)
        self.turned = rng.normal(size=(3, width)).astype(np.float32)
        self.apart = rng.normal(size=(3, 3)).astype(np.float32)
        self.apart[:, 2] = np.abs(self.apart[:, 2])
        if factors == 5:
            self.factors[4] = np.abs(self.factors[4])

    def numbered(self, first: int) -> RabitRows:
        numbers = np.arange(first, first + len(self.signs), dtype=np.uint64)
        return RabitRows(self.stored, self.rest, self.factors, numbers)

    def estimated(self, most: int | None = None, passing: Any = None) -> Floats:
        """Return how far rows are from queries, as far as these are among the nearest; infinity of others."""
        queries, count = self.turned.shape[0], len(self.signs)
        size = max(count, 1) if most is None else most
        heaps = np.empty((queries, size), np.float32), np.empty((queries, size), np.uint64)
        counts = np.zeros(queries, np.int64)
        keep_estimates(
            RabitParts([self.numbered(0)], [passing]),
            np.zeros(queries, np.int64),
            np.arange(queries),
            np.arange(queries),
            self.turned,
            *tables_of(self.turned),
            self.apart,
            *heaps,
            counts,
            WorkChunks(np.array([0, queries])),
        )
        out = np.full((queries, count), np.inf, np.float32)
        for query, its in enumerate(counts.tolist()):
            out[query, heaps[1][query, :its].astype(np.int64)] = heaps[0][query, :its]
        return out

    def _estimates(
        self, steps: npt.NDArray[Any], add: Floats, scale: Floats
    ) -> npt.NDArray[np.float64]:
        share, start = self.apart[:, :1].astype(np.float64), self.apart[:, 1:2]
        return self.turned.astype(np.float64) @ steps.T * scale + share * add + start

    def exact(self) -> npt.NDArray[np.float64]:
        steps = np.unpackbits(self.signs, axis=1, bitorder="little").astype(np.float64)
        steps = steps * (1 << self.bits) - ((1 << self.bits) - 0.5)
        if not self.bits:
            return self._estimates(steps, self.factors[0], self.factors[1])
        return self._estimates(steps + self.codes, self.factors[2], self.factors[3])


COUNTS: Final = [0, 1, 31, 32, 33, 64, 100]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", [8, 72, 128, 1056])
@pytest.mark.parametrize("bits", range(9))
def test_estimates_of_all_rows(count: int, width: int, bits: int) -> None:
    for has_errors in (True, False):
        rows = Rows(count, width, bits, has_errors=has_errors)
        exact, size = rows.exact(), 1e-6 * (1 << bits) * width
        np.testing.assert_allclose(rows.estimated(), exact, 1e-5, size)


@pytest.mark.parametrize("count", [1, 31, 33, 100, 500])
@pytest.mark.parametrize("width", [8, 128, 1056, 2080])
@pytest.mark.parametrize("bits", [0, 1, 4, 8])
@pytest.mark.parametrize("most", [1, 10, 300])
def test_the_nearest_rows(count: int, width: int, bits: int, most: int) -> None:
    """Where signs know how far a row is, or its error is so large that it cannot be left out."""
    rows = Rows(count, width, bits)
    if bits:
        rows.factors[4] = 1e9
    passing = (np.arange(count) % 3 != 1).astype(np.uint8)
    for mask in (None, passing):
        exact = rows.estimated()
        if mask is not None:
            exact[:, mask == 0] = np.inf
        found = rows.estimated(most, mask)
        kth = np.sort(exact, axis=1)[:, min(most, count) - 1 :][:, :1]
        assert np.array_equal(found, np.where(exact <= kth, exact, np.inf))


@pytest.mark.parametrize("width", [8, 72, 128])
@pytest.mark.parametrize("bits", [0, 4])
@pytest.mark.parametrize("most", [5, 200])
def test_rabit_queries_in_a_batch_equal_single_queries(width: int, bits: int, most: int) -> None:
    """Pairs of partitions in any order, each query's own together."""
    parts = [Rows(count, width, bits) for count in (40, 0, 97, 33)]
    turned, order = parts[0].turned, [2, 0, 1, 3, 0, 3, 2, 1]
    apart = np.random.default_rng(width).random((8, 3)).astype(np.float32)

    def found(pairs: slice) -> tuple[Any, Any, Any]:
        heaps = np.zeros((2, most), np.float32), np.zeros((2, most), np.uint64)
        counts = np.zeros(2, np.int64)
        asking = np.repeat([0, 1], 4)[pairs]
        keep_estimates(
            RabitParts([each.numbered(100 * at) for at, each in enumerate(parts)], [None] * 4),
            np.array(order)[pairs],
            asking,
            asking,
            turned,
            *tables_of(turned),
            apart[pairs].copy(),
            *heaps,
            counts,
            WorkChunks(np.array([0, len(asking)])),
        )
        return *heaps, counts

    together, first, second = found(slice(8)), found(slice(4)), found(slice(4, 8))
    for all_found, alone, other in zip(together, first, second, strict=True):
        assert np.array_equal(all_found[0], alone[0])
        assert np.array_equal(all_found[1], other[1])


def test_rabit_skips_rows_beyond_their_error_bound() -> None:
    """A heap that the first partition filled says what is left out of the second."""
    near, far = Rows(64, 128, 4), Rows(500, 128, 4)
    far.factors[0] += 1e4  # as far as signs say
    far.factors[2] = -1e6  # but they would be the nearest
    far.factors[4] = 1
    heaps: tuple[Any, Any, Any] = (
        np.empty((1, 10), np.float32),
        np.empty((1, 10), np.uint64),
        np.zeros(1, np.int64),
    )
    near.apart[:] = 1
    keep_estimates(
        RabitParts([near.numbered(0), far.numbered(100)], [None, None]),
        np.array([0, 1]),
        np.array([0, 0]),
        np.array([0, 0]),
        near.turned,
        *tables_of(near.turned),
        near.apart[:2],
        *heaps,
        WorkChunks(np.array([0, 1, 2])),
    )
    assert heaps[2].tolist() == [10]
    assert (heaps[1] < 64).all()


def test_rabit_skips_rows_beyond_the_nearest_of_their_partition() -> None:
    rows = Rows(100, 128, 4)
    rows.factors[4], rows.apart[:] = 1, 1
    rows.factors[0, 20:] += 1e4  # as far as signs say
    rows.factors[2, 20:] = -1e6  # but they would be the nearest
    found = rows.estimated(10)
    assert (np.isfinite(found).sum(axis=1) == 10).all()
    assert not np.isfinite(found[:, 20:]).any()


def test_rabit_estimates_with_nan_in_further_bits_keep_other_rows() -> None:
    """Rows that are at no distance leave their places to those that signs and errors would leave out."""
    rows = Rows(100, 128, 4)
    rows.factors[4] = 0
    rows.factors[0, 20:] += 1e4
    exact = rows.estimated()
    rows.factors[3, :20] = np.nan
    found = rows.estimated(90)
    assert (np.isfinite(found).sum(axis=1) == 80).all()
    assert np.array_equal(found[:, 20:], exact[:, 20:])
    assert (np.isfinite(rows.estimated(10)).sum(axis=1) == 10).all()


def test_rabit_estimates_with_nan_and_infinity() -> None:
    """NaN is left out, and what is no number in one row or query is so in no other."""
    rows = Rows(64, 16, 4)
    exact = rows.exact()
    rows.factors[:, 3] = np.nan
    rows.factors[4, 5] = np.nan
    rows.turned[1, 2] = np.nan
    found = rows.estimated()
    assert not np.isfinite(found[1]).any()
    assert not np.isfinite(found[:, 3]).any()
    others = [at for at in range(64) if at not in {3, 5}]
    np.testing.assert_allclose(found[::2, others], exact[::2, others], 1e-5, 1e-3)


def test_rabit_tables_with_wrong_arrays_are_refused() -> None:
    floats, flips = np.zeros((2, 6), np.float32), np.ones((4, 6), np.float32)
    for vectors, given in (
        (floats, flips[:3]),
        (floats[:, :4].copy(), flips),
        (np.zeros((2, 3), np.float32), flips[:, :3].copy()),
        (floats[:, :0].copy(), flips[:, :0].copy()),
    ):
        with pytest.raises(ValueError, match="four signs"):
            turn(vectors, given)
    turned, tables, ranges = (
        np.zeros((2, 8), np.float32),
        np.zeros((2, 2, 16), np.uint8),
        np.zeros((2, 2), np.float32),
    )
    for arrays in (
        (turned[:1], tables, ranges),
        (turned[:, :4].copy(), tables, ranges),
        (turned[:, :0].copy(), tables[:, :0].copy(), ranges),
        (turned, tables[:, :, :8].copy(), ranges),
        (turned, tables, ranges[:1]),
        (turned, tables, ranges[:, :1].copy()),
    ):
        with pytest.raises(ValueError, match="a query has a table"):
            sign_tables(*arrays)


@pytest.mark.parametrize(
    ("name", "shape", "why"),
    [
        ("signs", (40, 0), "rows have signs"),
        ("signs", (41, 2), "rows have signs"),
        ("signs", (40, 3), "rows are as wide"),
        ("rest", (41, 32), "rows have signs"),
        ("rest", (40, 33), "rows have signs"),
        ("rest", (40, 0), "rows have signs"),
        ("rest", (40, 72), "rows have signs"),
        ("factors", (2, 40), "rows have signs"),
        ("factors", (6, 40), "rows have signs"),
        ("factors", (5, 41), "rows have signs"),
        ("rows", (41,), "a number for each"),
        ("passing", (39,), "a mask has a value"),
        ("turned", (3, 24), "queries have a table"),
        ("turned", (2, 16), "each pair has a partition"),
        ("tables", (2, 4, 16), "queries have a table"),
        ("tables", (3, 5, 16), "queries have a table"),
        ("tables", (3, 4, 15), "queries have a table"),
        ("ranges", (2, 2), "queries have a table"),
        ("ranges", (3, 1), "queries have a table"),
        ("apart", (2, 3), "queries have a table"),
        ("apart", (3, 2), "queries have a table"),
        ("partitions", (2,), "each pair has a partition"),
        ("numbers", (2,), "each pair has a partition"),
        ("places", (2,), "each pair has a partition"),
        ("best", (2, 1), "a heap has"),
        ("best_rows", (3, 2), "a heap has"),
        ("counts", (2,), "a heap has"),
    ],
)
def test_rabit_codes_of_wrong_shape_are_refused(
    name: str, shape: tuple[int, ...], why: str
) -> None:
    good: dict[str, Any] = {
        "signs": np.zeros((40, 2), np.uint8),
        "rest": np.zeros((40, stored_width(16, 4)), np.uint8),
        "factors": np.zeros((5, 40), np.float32),
        "rows": np.zeros(40, np.uint64),
        "passing": np.zeros(40, np.uint8),
        "partitions": np.zeros(3, np.int64),
        "numbers": np.arange(3),
        "places": np.arange(3),
        "turned": np.zeros((3, 16), np.float32),
        "tables": np.zeros((3, 4, 16), np.uint8),
        "ranges": np.zeros((3, 2), np.float32),
        "apart": np.zeros((3, 3), np.float32),
        "best": np.zeros((3, 1), np.float32),
        "best_rows": np.zeros((3, 1), np.uint64),
        "counts": np.zeros(3, np.int64),
    }

    def keep(given: dict[str, Any]) -> None:
        signs, rest, factors, rows, passing, *others = given.values()
        parts = RabitParts([RabitRows(signs, rest, factors, rows)], [passing])
        keep_estimates(parts, *others, WorkChunks(np.array([0, 3])))  # type: ignore[call-arg]

    keep(good)
    with pytest.raises(ValueError, match=why):
        keep(good | {name: np.zeros(shape, good[name].dtype)})
