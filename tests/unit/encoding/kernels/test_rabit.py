"""Turns, tables of signs and estimates of RQ, beside plain twins; arguments that are refused."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from pennon.encoding.kernels.rabit import estimates, sign_tables, turn
from pennon.index.vector.rq_bits import blocked, packed_signs, stored_width

Floats = npt.NDArray[np.float32]

INFINITE: Final = np.float32(np.inf)


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
def test_turned_vectors(width: int) -> None:
    rng = np.random.default_rng(width)
    vectors = rng.normal(size=(5, width)).astype(np.float32)
    flips = rng.choice([-1, 1], (4, width)).astype(np.float32)
    turned = vectors.copy()
    turn(turned, flips)
    np.testing.assert_allclose(turned, turned_plainly(vectors, flips), 1e-5, 1e-5)


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

    def estimated(self, bounds: Any) -> Floats:
        out = np.full((len(self.turned), len(self.signs)), np.nan, np.float32)
        estimates(
            self.stored,
            self.rest,
            self.factors,
            self.turned,
            *tables_of(self.turned),
            self.apart,
            np.array(bounds, np.float32),
            out,
        )
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

    def lowest(self) -> npt.NDArray[np.float64]:
        """Return how near rows may be by their signs."""
        steps = np.unpackbits(self.signs, axis=1, bitorder="little") - 0.5
        rough = self._estimates(steps, self.factors[0], self.factors[1])
        return rough - self.apart[:, 2:] * self.factors[4] if self.bits else rough


COUNTS: Final = [0, 1, 31, 32, 33, 64, 100]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", [8, 72, 128, 1056])
@pytest.mark.parametrize("bits", range(9))
def test_estimates_of_all_rows(count: int, width: int, bits: int) -> None:
    for has_errors in (True, False):
        rows = Rows(count, width, bits, has_errors=has_errors)
        exact, size = rows.exact(), 1e-6 * (1 << bits) * width
        np.testing.assert_allclose(rows.estimated([INFINITE] * 3), exact, 1e-5, size)
        if bits and not has_errors:
            np.testing.assert_allclose(rows.estimated([-1e9, 0, 1e9]), exact, 1e-5, size)


@pytest.mark.parametrize("count", [32, 100, 500])
@pytest.mark.parametrize("width", [8, 128, 1056, 2080])
@pytest.mark.parametrize("bits", [0, 1, 4, 8])
def test_rows_beyond_bounds_are_left_out(count: int, width: int, bits: int) -> None:
    rows = Rows(count, width, bits)
    lowest, exact = rows.lowest(), rows.exact()
    bounds = np.sort(lowest, axis=1)[:, count // 3].astype(np.float32)
    found = rows.estimated(bounds)
    is_left = np.isinf(found)
    whole = count // 32 * 32
    np.testing.assert_allclose(found[~is_left], exact[~is_left], 1e-5, 1e-6 * (1 << bits) * width)
    assert not is_left[:, whole:].any()
    assert (lowest[is_left] > np.broadcast_to(bounds[:, None], lowest.shape)[is_left] - 1e-3).all()
    # a table is rounded by half a step, and half a step is allowed for: what is farther is left out
    blur = tables_of(rows.turned)[1][:, 1:] * width / 4 * np.abs(rows.factors[1]) * 1.1 + 1e-3
    assert is_left[:, :whole][(lowest - blur > bounds[:, None])[:, :whole]].all()


def test_rows_that_only_signs_know_are_left_out_rightly() -> None:
    """Without errors to count with, no row is left out that is below the bound."""
    rows = Rows(3200, 8, 0)
    exact = rows.estimated([INFINITE] * 3)
    bounds = np.sort(exact, axis=1)[:, 1000]
    found = rows.estimated(bounds)
    assert np.array_equal(found[exact < bounds[:, None]], exact[exact < bounds[:, None]])
    assert np.isinf(found).mean() > 0.5


def test_numbers_that_are_none() -> None:
    """NaN stays NaN or is left out, and what is no number in one row or query is so in no other."""
    rows = Rows(64, 16, 4)
    exact = rows.exact()
    rows.factors[:, 3] = np.nan
    rows.factors[4, 5] = np.nan
    rows.turned[1, 2] = np.nan
    for bounds in ([INFINITE] * 3, [1e9] * 3):
        found = rows.estimated(bounds)
        assert not np.isfinite(found[1]).any()
        assert not np.isfinite(found[:, 3]).any()
        others = [at for at in range(64) if at not in {3, 5}]
        np.testing.assert_allclose(found[::2, others], exact[::2, others], 1e-5, 1e-3)


def test_arrays_that_do_not_fit_are_refused() -> None:
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
        ("rest", (41, 32), "rows have signs"),
        ("rest", (40, 33), "rows have signs"),
        ("rest", (40, 0), "rows have signs"),
        ("rest", (40, 72), "rows have signs"),
        ("factors", (2, 40), "rows have signs"),
        ("factors", (6, 40), "rows have signs"),
        ("factors", (5, 41), "rows have signs"),
        ("turned", (3, 24), "queries are as wide"),
        ("turned", (2, 16), "queries are as wide"),
        ("tables", (2, 4, 16), "queries are as wide"),
        ("tables", (3, 5, 16), "queries are as wide"),
        ("tables", (3, 4, 15), "queries are as wide"),
        ("ranges", (2, 2), "queries are as wide"),
        ("ranges", (3, 1), "queries are as wide"),
        ("apart", (2, 3), "queries are as wide"),
        ("apart", (3, 2), "queries are as wide"),
        ("bounds", (2,), "queries are as wide"),
        ("out", (2, 40), "queries are as wide"),
        ("out", (3, 41), "queries are as wide"),
    ],
)
def test_codes_that_do_not_fit_are_refused(name: str, shape: tuple[int, ...], why: str) -> None:
    good: dict[str, Any] = {
        "signs": np.zeros((40, 2), np.uint8),
        "rest": np.zeros((40, stored_width(16, 4)), np.uint8),
        "factors": np.zeros((5, 40), np.float32),
        "turned": np.zeros((3, 16), np.float32),
        "tables": np.zeros((3, 4, 16), np.uint8),
        "ranges": np.zeros((3, 2), np.float32),
        "apart": np.zeros((3, 3), np.float32),
        "bounds": np.zeros(3, np.float32),
        "out": np.zeros((3, 40), np.float32),
    }
    estimates(**good)
    with pytest.raises(ValueError, match=why):
        estimates(**good | {name: np.zeros(shape, good[name].dtype)})
