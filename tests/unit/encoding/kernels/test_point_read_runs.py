"""Rows picked out of chunks whose levels are runs, or nothing but 0; damage is an error or other rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.chunk_lookup import ChunkTable
from pennon.encoding.kernels.point_read import PickCode, pick_pieces
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.page_rules import RULES_OF_2_2
from pennon.errors import FormatError
from tests.unit.encoding.kernels.test_point_read import (
    RANDOM,
    ROWS,
    Page,
    lists,
    numbers,
    same,
    some,
    some_rows,
    try_damage,
    words,
)


def _long_lists(rows: int, most: int, items: Any = numbers, share: float = 0.1) -> pa.Array:
    """Lists of 0 to ``most`` items; some are NULL."""
    sizes = RANDOM.integers(0, most + 1, rows)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    mask = pa.array(RANDOM.random(rows) < share)
    return pa.ListArray.from_arrays(pa.array(offsets), items(int(offsets[-1])), mask=mask)


def _even_lists(rows: int, size: int, items: pa.Array) -> pa.Array:
    offsets = np.arange(0, rows * size + 1, size, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


ARRAYS_IN_RUNS = {
    "few NULLs": some(numbers(ROWS), 0.01),
    "NULLs in runs": pa.array(RANDOM.integers(0, 1 << 40, ROWS), mask=np.arange(ROWS) % 200 < 20),
    "long lists": _long_lists(900, 200),
    "lists longer than runs": _long_lists(40, 3000),
    "lists of NULLs in runs": _long_lists(600, 90, lambda n: some(numbers(n), 0.004)),
    "NULL and empty lists": lists(numbers(40), ROWS, 2),
    "sparse lists": _long_lists(ROWS * 4, 6, share=0.98),
    "even lists": _even_lists(400, 90, numbers(36_000)),
    "even lists of lists": _even_lists(300, 4, _even_lists(1200, 45, numbers(54_000))),
    "long lists of strings": _long_lists(300, 60, words),
    "long lists of lists": _even_lists(500, 3, _long_lists(1500, 80)),
}
"""Those of which levels are runs in version 2.2."""


def in_runs(name: str) -> Page:
    return Page.of(ARRAYS_IN_RUNS[name], RULES_OF_2_2)


def test_arrays_in_runs_have_levels_in_runs() -> None:
    """Repetition levels, definition levels, or both."""
    found = set()
    for name in ARRAYS_IN_RUNS:
        layout = in_runs(name).layout
        assert layout.dictionary is None
        kinds = tuple([type(each) for each in (layout.rep, layout.definition)])
        assert e.Rle in kinds, name
        found.add(kinds)
    none, packed = type(None), e.OutOfLineBitpacking
    several = {(none, e.Rle), (e.Rle, none), (e.Rle, e.Rle), (e.Rle, packed), (packed, e.Rle)}
    assert found == several


@pytest.mark.parametrize("name", ARRAYS_IN_RUNS)
def test_point_read_of_levels_in_runs_equals_whole_chunks(name: str) -> None:
    page = in_runs(name)
    random = np.random.default_rng(12)
    for _ in range(40):
        rows = some_rows(random, page.rows)
        same(page.pick(rows, page.data), page.unpack(rows, page.data))
    every = Rows.at(np.arange(page.rows))
    same(page.pick(every, page.data), page.unpack(every, page.data))


@pytest.mark.parametrize("name", ARRAYS_IN_RUNS)
def test_damaged_chunks_of_levels_in_runs_raise_format_error_or_read(name: str) -> None:
    try_damage(in_runs(name))


KINDS = {"runs of 8 bits": 1, "runs of 16 bits": 2, "runs of 32 bits": 4, "plain": 0, "zeros": -1}


def _coded(levels: np.ndarray, kind: str) -> tuple[tuple[int, int, int], bytes]:
    """Return how levels are encoded, and their bytes; some runs are of nothing."""
    width = KINDS[kind]
    if width < 0:
        return (7, 16, 0), b""
    if width == 0:
        return (1, 16, 0), levels.astype("<u2").tobytes()
    borders = np.flatnonzero(np.diff(levels, prepend=levels[:1] + 1))
    runs = []
    for start, end in pairwise([*borders.tolist(), len(levels)]):
        at = start
        while at < end:
            size = min(end - at, int(RANDOM.integers(0, 256)))
            runs.append((levels[start], size))
            at += size
    values = np.array([level for level, _ in runs], "<u2").tobytes()
    sizes = b"".join(size.to_bytes(width, "little") for _, size in runs)
    return (6, 16, width), len(values).to_bytes(8, "little") + values + sizes


def _chunk(*buffers: bytes, levels: int) -> Bytes:
    sizes = b"".join(len(each).to_bytes(2, "little") for each in buffers)
    made = levels.to_bytes(2, "little") + sizes
    for each in buffers:
        made += bytes(-len(made) % 8) + each
    return np.frombuffer(made + bytes(-len(made) % 8), np.uint8)


@pytest.mark.parametrize("of_rep", [kind for kind in KINDS if kind != "zeros"])
@pytest.mark.parametrize("of_definition", [*KINDS, "none"])
def test_lists_by_levels_of_each_kind_equal_the_twin(of_rep: str, of_definition: str) -> None:
    for _ in range(30):
        rep = np.repeat(RANDOM.integers(0, 2, 12), RANDOM.integers(0, 90, 12))
        rep = np.concatenate([[1], rep])
        definition = np.repeat(RANDOM.integers(0, 3, len(rep)), RANDOM.integers(1, 60, len(rep)))
        definition = definition[: len(rep)]
        definition[rep == 0] = np.minimum(definition[rep == 0], 1)  # 2: a list without items
        if of_definition in ("zeros", "none"):
            definition[:] = 0
        visible = definition < 2
        values = RANDOM.integers(0, 1 << 31, int(visible.sum()), np.int32)
        coded = [_coded(rep, of_rep)]
        if of_definition != "none":
            coded.append(_coded(definition, of_definition))
        buffers = [part for _, part in coded]
        data = _chunk(*buffers, values.astype("<i4").tobytes(), levels=len(rep))
        codes = [code for code, _ in coded] + [(0, 0, 0)]
        count = int(rep.sum())
        offsets, firsts = np.array([0, len(data)]), np.array([0, len(values)])
        table = ChunkTable(0, offsets, firsts, np.array([0, count]), np.zeros(1, np.uint8))
        code = PickCode((*codes[0], *codes[1], 1, 32, 0, 0, 1, 1))
        rows = some_rows(RANDOM, count)
        if not rows.count:
            continue
        zero = np.zeros(1, np.int64)
        cuts = np.array([0, len(rows.starts)])
        found = pick_pieces(
            [table], [code], zero, cuts, rows.starts, rows.ends, zero, zero, zero, [data], [0]
        )
        wanted = np.isin(np.cumsum(rep) - 1, rows.indices())
        assert found[0] is not None
        assert found[0].tolist() == rep[wanted].tolist()
        if of_definition == "none":
            assert found[1] is None
        else:
            assert found[1] is not None
            assert found[1].tolist() == definition[wanted].tolist()
        assert found[2].view("<i4").tolist() == values[wanted[visible]].tolist()


@pytest.mark.parametrize("width", [1, 2, 4])
def test_levels_in_runs_that_do_not_fit_are_refused(width: int) -> None:
    """Too few levels, values without lengths, values beyond the buffer, no room for their size."""
    zero = np.zeros(1, np.int64)
    size = (4).to_bytes(8, "little")
    lengths = (1).to_bytes(width, "little") + (2).to_bytes(width, "little")
    fine = size + b"\1\0\0\0" + lengths
    bad = [
        size + b"\1\0\0\0" + (1).to_bytes(width, "little") * 2,
        fine[:-1],
        fine + bytes(width),
        (3).to_bytes(8, "little") + fine[8:],
        b"\xff" * 8 + fine[8:],
        (2**63).to_bytes(8, "little") + fine[8:],
        b"\0" * 8,
        fine[:7],
        b"",
    ]
    for is_list in (True, False):
        runs, none = (6, 16, width), (0, 0, 0)
        levels = (*runs, *runs) if is_list else (*none, *runs)
        code = PickCode((*levels, 1, 32, 0, 0, int(is_list), 0))
        rows = np.array([0, 1 if is_list else 3])

        def read(
            part: bytes, code: PickCode = code, rows: Any = rows, twice: bool = is_list
        ) -> Any:
            buffers = [fine, part] if twice else [part]
            data = _chunk(*buffers, bytes(12), levels=3)
            values = 3 if not twice else 2  # of lists, one level has none
            offsets, firsts = np.array([0, len(data)]), np.array([0, values])
            table = ChunkTable(0, offsets, firsts, rows, np.zeros(1, np.uint8))
            ends = rows[1:]
            cuts = np.array([0, 1])
            return pick_pieces(
                [table], [code], zero, cuts, zero, ends, zero, zero, zero, [data], [0]
            )

        assert read(fine)[1].tolist() == [1, 0, 0]
        for part in bad:
            with pytest.raises(FormatError, match="levels of a chunk are not as many"):
                read(part)
    with pytest.raises(ValueError, match="no such run lengths"):
        PickCode((0, 0, 0, 6, 16, 3, 1, 32, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="no such kind"):
        PickCode((0, 0, 0, 0, 0, 0, 6, 16, 1, 0, 0, 0))
