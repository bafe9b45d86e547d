"""Distances of rows, and the nearest of them, beside plain twins; arguments that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pennon.index.kernels.vectors.vector_rows import (
    CodeRows,
    RowParts,
    bounds_bytes,
    keep_rows,
    quantise_rows,
    row_distances,
)
from pennon.index.kernels.vectors.work_chunks import WorkChunks
from tests.unit.index.kernels.vectors.heaps import Asked, bytes_of

Array = npt.NDArray[Any]
WIDTHS = (1, 3, 8, 15, 16, 17, 64, 100)


def example(kind: int, width: int, count: int) -> tuple[Array, Array, Array]:
    """Return rows, a query, and how far it is from each of them."""
    rng = np.random.default_rng(kind * 1000 + width)
    types = {0: np.float32, 1: np.float32, 2: np.float64, 3: np.float64}
    if kind in types:
        rows = rng.normal(size=(count, width)).astype(types[kind])
        query = rng.normal(size=width).astype(types[kind])
    else:
        rows = rng.integers(0, 256, (count, width), np.uint8)
        query = rng.integers(0, 256, width, np.uint8)
    if kind == 5:
        query = rng.normal(size=width).astype(np.float32)
    if kind == 6:
        return rows, query, np.unpackbits(rows ^ query, axis=1).sum(axis=1)
    if kind == 7:
        query = rng.normal(size=(width, 256)).astype(np.float32)
        return rows, query.reshape(-1), query[np.arange(width), rows].sum(axis=1)
    exact = rows.astype(np.float64)
    if kind % 2:
        return rows, query, -(exact @ query)
    return rows, query, ((exact - query) ** 2).sum(axis=1)


@pytest.mark.parametrize("kind", range(8))
def test_distances_of_rows(kind: int) -> None:
    for width in WIDTHS:
        rows, query, expected = example(kind, width, 4000)
        queries = np.stack([query, query[::-1], query])
        both = np.full((3, 4000), np.nan, np.float32)
        row_distances(kind, bytes_of(rows), bytes_of(queries), both)
        np.testing.assert_allclose(both[0], expected, rtol=1e-5, atol=1e-3)
        assert both[2].tolist() == both[0].tolist()
        alone, out = np.empty((1, 4000), np.float32), both[1]
        row_distances(kind, bytes_of(rows), bytes_of(queries[1:2]), alone)
        assert alone[0].tolist() == out.tolist()


@pytest.mark.parametrize("kind", range(8))
@pytest.mark.parametrize("width", [1, 17, 128, 3000])
@pytest.mark.parametrize("most", [1, 10, 2000])
def test_the_nearest_rows(kind: int, width: int, most: int) -> None:
    rng = np.random.default_rng([kind, width])
    sizes = [0, 1, 7, 300]
    asked = Asked(rng, sizes, queries=40, heaps=30, most=most)
    rows, query, _ = example(kind, width, sum(sizes))
    parts = [each.copy() for each in np.split(bytes_of(rows), np.cumsum(sizes)[:-1])]
    queries = np.stack([np.roll(query, at) for at in range(40)])
    starts = rng.normal(size=40).astype(np.float32)
    far = np.empty((40, sum(sizes)), np.float32)
    row_distances(kind, bytes_of(rows), bytes_of(queries), far)
    near = np.split(starts[:, None] + np.float32(0.5) * far, np.cumsum(sizes)[:-1], axis=1)
    asks = bytes_of(queries)
    passing, *pairs = by_pair(asked)
    rows_of = [CodeRows(part, numbers) for part, numbers in zip(parts, asked.rows, strict=True)]
    made = RowParts(kind, rows_of, passing)
    keep_rows(made, *pairs, asks, starts, 0.5, *asked.heaps, chunks_of(pairs[0]))  # type: ignore[call-arg]
    asked.check(lambda part, at: near[part][at], error=1e-5 * np.abs(far).max())


def by_pair(asked: Asked) -> tuple[Any, ...]:
    """Return what the kernel takes; a part of each partition's pairs comes behind those of the others."""
    _, passing, ends, numbers, places = asked.pairs
    partitions = np.arange(len(ends)).repeat(np.diff(ends, prepend=0))
    order = np.lexsort((partitions, np.arange(len(partitions)) % 4 == 0))
    return passing, partitions[order], numbers[order], places[order]


def chunks_of(pairs: Array) -> WorkChunks:
    """Return all pairs, cut at some places."""
    return WorkChunks(np.array([0, 0, len(pairs) // 3, len(pairs) // 2, len(pairs)]))


def spoil(rows: Array, queries: Array, how: str) -> None:
    """Change some vectors."""
    if how == "ties":
        rows[:], queries[:] = np.trunc(rows), np.trunc(queries)
    elif how == "equal":
        rows[:], queries[::2] = 1.5, 1.5
    elif how == "no numbers":
        rows[::7, 0], rows[3::50], queries[1, -1] = np.nan, np.nan, np.nan
    elif how == "infinite":
        rows[::90, 0], queries[1, -1], queries[2] = np.inf, -np.inf, 3e38
    elif how == "huge":
        rows[:1000] *= 1e18
        queries[::2] *= 1e18
    elif how == "tiny":
        rows[:1000] *= 1e-25
        queries[::2] *= 1e-25
    elif how == "far":
        queries[::3] += 1e4
        rows[5] = 1e6
    elif how == "long":  # squares of their lengths are infinite
        rows[:] = np.where(
            rows > 0, np.float32(8e18), np.nextafter(np.float32(8e18), np.float32(0))
        )
        queries[:] = np.sign(queries)
    elif how == "unit":
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        queries /= np.linalg.norm(queries, axis=1)[:, None]


def cut(rows: Array) -> Array | None:
    """Return rows of float32 cut to bytes; None if they are not worth it, or cannot be cut."""
    made = np.empty(bounds_bytes(len(rows), rows.shape[1] // 4), np.uint8)
    return made if len(made) and quantise_rows(rows, made) else None


def rows_cut(codes: Array, numbers: Array, made: Array | None) -> CodeRows:
    """Return rows as kernels take them."""
    rows = CodeRows(codes, numbers)
    if made is not None:
        rows.take_bounds(made)
    return rows


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(
    "how",
    ["plain", "ties", "equal", "no numbers", "infinite", "huge", "tiny", "far", "long", "unit"],
)
@pytest.mark.parametrize("width", [1, 3, 16, 17, 128, 1030])
@pytest.mark.parametrize("most", [1, 10, 300])
def test_nearest_rows_with_uint8_bounds_equal_full_distances(
    kind: int, how: str, width: int, most: int
) -> None:
    rng = np.random.default_rng([width, most])
    sizes = [63, 64, 300, 0, 900] if width > 500 else [63, 64, 300, 0, 2500]
    asked = Asked(rng, sizes, queries=40, heaps=40, most=most)
    asked.ends, asked.numbers = np.arange(40, 240, 40), np.tile(np.arange(40), len(sizes))
    asked.places = np.tile(rng.permutation(40), len(sizes))
    rows = (rng.normal(size=(5, width))[rng.integers(0, 5, sum(sizes))]).astype(np.float32)
    rows += rng.normal(size=rows.shape).astype(np.float32) * np.float32(0.3)
    queries = (rows[:40] + np.float32(0.1)).astype(np.float32)
    spoil(rows, queries, how)
    parts = [each.copy() for each in np.split(bytes_of(rows), np.cumsum(sizes)[:-1])]
    far = np.empty((40, len(rows)), np.float32)
    row_distances(kind, bytes_of(rows), bytes_of(queries), far)
    starts = np.full(40, kind, np.float32)  # of cosine and dot it is 1
    near = np.split(starts[:, None] + far, np.cumsum(sizes)[:-1], axis=1)
    cuts = [cut(each) for each in parts]
    if how in {"plain", "ties", "no numbers", "far", "unit"}:
        assert [each is not None for each in cuts] == [width > 3 and size > 63 for size in sizes]
    passing, *pairs = by_pair(asked)
    made = RowParts(
        kind, [rows_cut(*each) for each in zip(parts, asked.rows, cuts, strict=True)], passing
    )
    keep_rows(made, *pairs, bytes_of(queries), starts, 1.0, *asked.heaps, chunks_of(pairs[0]))  # type: ignore[call-arg]
    for heap in range(0, 40, 4):
        query = asked.places[heap]
        right = sorted(
            (distance, row)
            for its, ids, mask in zip(near, asked.rows, asked.passing, strict=True)
            for at, (distance, row) in enumerate(
                zip(its[query].tolist(), ids.tolist(), strict=True)
            )
            if not np.isnan(distance) and (mask is None or mask[at])
        )
        distances, numbers, counts = asked.heaps
        count = counts[heap]
        found = zip(distances[heap, :count].tolist(), numbers[heap, :count].tolist(), strict=True)
        assert sorted(found) == right[:most]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("kind", 8, "whole values"),
        ("codes", np.zeros((5, 7), np.uint8), "whole values"),
        ("codes", np.zeros((5, 12), np.uint8), "as many values"),
        ("codes", np.zeros((4, 8), np.uint8), "a number for each row"),
        ("cut", np.zeros(0, np.uint8), "as many bytes"),
        ("cut", np.zeros(99, np.uint8), "as many bytes"),
        ("passing", [], "a mask or None"),
        ("passing", [np.zeros(4, np.uint8)], "a value for each row"),
        ("partitions", np.array([1]), "each pair"),
        ("partitions", np.array([-1]), "each pair"),
        ("partitions", np.array([0, 0]), "each pair"),
        ("numbers", np.array([1]), "each pair"),
        ("places", np.array([3]), "each pair"),
        ("places", np.array([-1]), "each pair"),
        ("queries", np.zeros((3, 4), np.uint8), "as many values"),
        ("starts", np.zeros(2, np.float32), "a query has a start"),
        ("best", np.zeros((1, 0), np.float32), "a heap"),
        ("borders", np.array([0, 2]), "some of the pairs"),
    ],
)
def test_row_partitions_with_wrong_arrays_are_refused(name: str, value: object, why: str) -> None:
    good: dict[str, Any] = {
        "kind": 0,
        "codes": np.zeros((5, 8), np.uint8),
        "rows": np.zeros(5, np.uint64),
        "cut": None,
        "passing": [None],
        "partitions": np.array([0]),
        "numbers": np.array([0]),
        "places": np.array([2]),
        "queries": np.zeros((3, 8), np.uint8),
        "starts": np.zeros(3, np.float32),
        "factor": 1.0,
        "best": np.zeros((1, 1), np.float32),
        "best_rows": np.zeros((1, 1), np.uint64),
        "counts": np.array([0]),
        "borders": np.array([0, 1]),
    }

    def keep(given: dict[str, Any]) -> None:
        kind, codes, rows, made, passing, *others, borders = given.values()
        parts = RowParts(kind, [rows_cut(codes, rows, made)], passing)
        keep_rows(parts, *others, WorkChunks(borders))  # type: ignore[call-arg]

    keep(good)
    with pytest.raises(ValueError, match=why):
        keep(good | {name: value})


def test_partitions_are_of_one_width() -> None:
    rows = [CodeRows(np.zeros((5, width), np.uint8), np.zeros(5, np.uint64)) for width in (8, 12)]
    with pytest.raises(ValueError, match="are as wide"):
        RowParts(0, rows, [None, None])
    with pytest.raises(ValueError, match="a partition has rows"):
        RowParts(0, [None], [None])  # type: ignore[list-item]


def test_quantise_rows_refuses_buffers_of_wrong_size() -> None:
    rows = np.zeros((64, 64), np.uint8)
    assert bounds_bytes(63, 16) == bounds_bytes(64, 15) == bounds_bytes(64, 4097) == 0
    size = bounds_bytes(64, 16)
    assert 64 * 16 < size < 64 * 32
    assert not quantise_rows(rows, np.empty(size, np.uint8))
    for wrong, out in [(rows, size - 1), (rows, 0), (rows[:, :63].copy(), size), (rows[:63], size)]:
        with pytest.raises(ValueError, match="as many bytes"):
            quantise_rows(wrong, np.empty(out, np.uint8))
    values = np.arange(64 * 16, dtype=np.float32).reshape(64, 16)
    assert quantise_rows(bytes_of(values), np.empty(size, np.uint8))


def test_row_distances_of_long_codes_do_not_overflow() -> None:
    rows = np.full((1, 100_000), 255, np.uint8)
    out = np.empty((1, 1), np.float32)
    row_distances(4, rows, np.zeros((1, 100_000), np.uint8), out)
    assert out[0, 0] == np.float32(100_000 * 255 * 255)


@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 130, 1024, 1025, 4095, 4096, 4097])
@pytest.mark.parametrize("count", [1, 3, 4, 257])
@pytest.mark.parametrize("asked", [1, 3, 7, 20])
def test_squares_of_codes_are_exact(width: int, count: int, asked: int) -> None:
    rng = np.random.default_rng([width, count])
    rows, queries = (
        rng.integers(0, 256, (each, width)).astype(np.uint8) for each in (count, asked)
    )
    rows[0], queries[0], queries[-1] = 255, 0, 255
    out = np.full((asked, count), np.nan, np.float32)
    row_distances(4, rows, queries, out)
    apart = rows[None].astype(np.int64) - queries[:, None]
    assert out.tolist() == (apart**2).sum(axis=2).astype(np.float32).tolist()


def test_row_distances_with_wrong_arrays_are_refused() -> None:
    rows, query = np.zeros((2, 8), np.uint8), np.zeros(8, np.uint8)
    out = np.empty(2, np.float32)
    one = out[None]
    for kind in (-1, 8, 1 << 20):
        with pytest.raises(ValueError, match="kind"):
            row_distances(kind, rows, query[None], one)
    with pytest.raises(ValueError, match="kind"):
        row_distances(0, rows[:, :7].copy(), query[None], one)
    with pytest.raises(ValueError, match="as many values"):
        row_distances(0, rows, query[None, :4].copy(), one)
    with pytest.raises(ValueError, match="as many values"):
        row_distances(5, rows, query[None], one)
    with pytest.raises(ValueError, match="as many values"):
        row_distances(4, rows[:, :0].copy(), query[None, :0].copy(), one)
    with pytest.raises(ValueError, match="each row"):
        row_distances(4, rows, query[None], one[:, :1].copy())
    with pytest.raises(ValueError, match="each row"):
        row_distances(4, rows, np.zeros((2, 8), np.uint8), one)
