"""Chunk words and row indices, compared with plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.encoding.kernels.chunk_index import flat_tables, index_chunks, index_rows
from pennon.encoding.kernels.chunk_lookup import find_pieces, flat_table

MOST = 1 << 16


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("chunks", [1, 2, 700])
def test_chunk_words_become_offsets_and_first_items(width: int, chunks: int) -> None:
    rng = np.random.default_rng(chunks)
    sizes = rng.integers(1, 1 << (8 * width - 4), chunks)
    logs = rng.integers(0, 16, chunks)
    logs[-1] = 0
    words = ((sizes - 1) << 4 | logs).astype(f"<u{width}")
    counts = [1 << int(log) for log in logs[:-1]] + [37]
    numbers, size_bytes = index_chunks(words.view(np.uint8), width, sum(counts), MOST)
    offsets, firsts, found, nothing = numbers.tolist()
    assert offsets == [0, *np.cumsum(sizes * 8).tolist()]
    assert firsts == [0, *np.cumsum(counts).tolist()]
    assert found == [*counts, 0]
    assert not any(nothing)
    assert size_bytes == offsets[-1]


@pytest.mark.parametrize("width", [2, 4])
def test_chunk_tables_of_many_files_equal_those_of_each(width: int) -> None:
    rng = np.random.default_rng(width)
    items, files, pages = 300, [], []
    for chunks in (1, 5, 40):
        words = (rng.integers(0, 200, chunks) << 4 | rng.integers(0, 3, chunks)).astype(
            f"<u{width}"
        )
        front = int(rng.integers(0, 30))
        files.append(np.concatenate([np.zeros(front, np.uint8), words.view(np.uint8)]))
        pages.append([1, front, chunks * width, 100, 1 << 20, 0, 0])
    tables = flat_tables(files, np.array(pages), width, items, MOST)
    cuts, starts, ends = np.array([0, 2]), np.array([3, 250]), np.array([90, 300])
    for data, (_, front, size, *_), table in zip(files, pages, tables, strict=True):
        numbers, _ = index_chunks(data[front : front + size], width, items, MOST)
        assert table is not None
        found, wanted = (
            find_pieces([each], np.zeros(1, np.int64), cuts, starts, ends)
            for each in (table, flat_table(100, numbers))
        )
        assert [np.asarray(each).tolist() for each in found[0]] == [
            np.asarray(each).tolist() for each in wanted[0]
        ]
        assert found[1].tolist() == wanted[1].tolist()


def test_chunk_tables_of_damaged_pages_are_none() -> None:
    words = np.array([3, 0], "<u2").view(np.uint8)  # 16 bytes: 8 items, and what is left
    for page in (
        [0, 0, 4, 0, 40],  # no page
        [1, 1, 4, 0, 40],  # words behind the end
        [1, -2, 4, 0, 40],
        [1, 0, 3, 0, 40],
        [1, 0, 0, 0, 40],
        [1, 0, 4, -1, 40],
        [1, 0, 4, 0, 15],  # chunks behind the end
        [1, 0, 1 << 62, 0, 40],
    ):
        assert flat_tables([words], np.array([page]), 2, 9, MOST) == [None]
    (fine,) = flat_tables([words], np.array([[1, 0, 4, 0, 40]]), 2, 9, MOST)
    assert fine is not None
    for items, most in ((7, MOST), (8, MOST), (19, 10)):
        assert flat_tables([words], np.array([[1, 0, 4, 0, 40]]), 2, items, most) == [None]
    for files, width in (([words], 3), ([], 2)):
        with pytest.raises(ValueError, match="differ in number"):
            flat_tables(files, np.array([[1, 0, 4, 0, 40]]), width, 9, MOST)


def test_chunk_words_without_all_items_are_refused() -> None:
    words = np.array([3, 0], "<u2").view(np.uint8)  # 8 items, and what is left
    assert index_chunks(words, 2, 9, MOST)[0][2].tolist() == [8, 1, 0]
    for items in (7, 8):
        with pytest.raises(ValueError, match="more than the"):
            index_chunks(words, 2, items, MOST)
    with pytest.raises(OverflowError, match="a last chunk of 11 items"):
        index_chunks(words, 2, 19, 10)
    for wrong, width in ((words[:3], 2), (words[:0], 2), (words[:2], 4), (words, 3)):
        with pytest.raises(ValueError, match="no words"):
            index_chunks(wrong, width, 9, MOST)
    assert index_chunks(words[:2], 2, 0, MOST)[0][2].tolist() == [0, 0]


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("chunks", [1, 2, 500])
def test_row_index_has_the_first_row_of_each_chunk(stride: int, chunks: int) -> None:
    rng = np.random.default_rng(chunks)
    table = rng.integers(0, 9, (chunks, stride)).astype("<u8")
    table[:, 0] += 1
    table[:, 1] *= rng.integers(0, 2, chunks).astype("<u8")
    table[-1, 1] = 0
    firsts, goes_on = [0], [False]
    for ends, rest, *_ in table.tolist():
        firsts.append(firsts[-1] + ends + (rest > 0) - goes_on[-1])
        goes_on.append(rest > 0)
    found = index_rows(table.view(np.uint8).reshape(-1), chunks, stride)
    assert found[0].tolist() == firsts
    assert found[1].tolist() == goes_on[:-1]
    assert found[1].dtype == np.bool_


@pytest.mark.parametrize(
    "table",
    [
        [[1, 2]],  # a row that never ends
        [[1, 2], [0, 0]],  # one that goes on in a chunk where no row ends
        [[1 << 40, 0]],
        [[(1 << 64) - 1, 0]],
    ],
)
def test_row_index_with_unfinished_rows_is_refused(table: list[list[int]]) -> None:
    data = np.array(table, "<u8").view(np.uint8).reshape(-1)
    with pytest.raises(ValueError, match="row"):
        index_rows(data, len(table), 2)
    for wrong in (data[:-1], data[:-8]):
        with pytest.raises(ValueError, match="a row index of"):
            index_rows(wrong, len(table), 2)


def test_flat_table_finds_the_chunk_of_a_value() -> None:
    numbers = np.array([[0, 10, 30], [0, 3, 5], [3, 2, 0], [0, 0, 0]])
    table, zero = flat_table(1000, numbers), np.zeros(1, np.int64)
    for row, chunk in enumerate((0, 0, 0, 1, 1)):
        rows = np.array([row]), np.array([row + 1])
        (_, chunks, _, places), *_ = find_pieces([table], zero, np.array([0, 1]), *rows)
        assert (chunks.tolist(), places.tolist()) == ([chunk], [1000 + int(numbers[0, chunk])])
    for position, wrong in ((-1, numbers), (0, numbers[:3]), (0, numbers[:, :1].copy())):
        with pytest.raises(ValueError, match="no table"):
            flat_table(position, wrong)
