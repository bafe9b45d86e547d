"""Chunks of columns that were read from pages of different lengths."""

from __future__ import annotations

import pyarrow as pa

from pennon.file.v2_0.reader import align


def _lengths(*columns: list[int]) -> list[tuple[int, ...]]:
    chunks = [[pa.nulls(rows) for rows in column] for column in columns]
    return [tuple(map(len, parts)) for parts in align(chunks)]


def test_chunks_are_cut_at_every_border() -> None:
    assert _lengths([3, 2], [1, 4]) == [(1, 1), (2, 2), (2, 2)]


def test_chunks_of_zero_rows_are_empty() -> None:
    assert _lengths([], [0]) == []
    assert _lengths([0, 0], []) == []


def test_empty_chunks_are_passed_over() -> None:
    assert _lengths([0, 2, 0], [2]) == [(2, 2)]
