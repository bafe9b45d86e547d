"""The strategy of reading rows: each threshold from both sides, and its descriptions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.read_protocol import run
from pennon.encoding.rows import Rows
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1 import strategy as s
from pennon.encoding.v2_1.layouts import ConstantPage, FullZip, Layer, MiniBlock
from pennon.encoding.v2_1.point_read import recipe_of
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_data_file, open_data_file
from pennon.file.v2_1.reader import FieldReader
from pennon.io import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V2_1

LAYERS = (Layer.ALL_VALID_ITEM,)
PLAIN = MiniBlock(None, None, e.Flat(64), None, 0, LAYERS, 1, 0, 1000, is_large=False)
STRINGS = MiniBlock(None, None, e.Variable(e.Flat(32)), None, 0, LAYERS, 1, 0, 1000, is_large=False)
VECTORS = MiniBlock(
    None,
    None,
    e.FixedSizeList(16, has_validity=False, values=e.Flat(32)),
    None,
    0,
    LAYERS,
    1,
    0,
    1000,
    is_large=False,
)
DIGESTS = MiniBlock(None, None, e.Flat(128), None, 0, LAYERS, 1, 0, 1000, is_large=False)
RUNS = MiniBlock(
    None, None, e.Rle(e.Flat(64), e.Flat(8)), None, 0, LAYERS, 2, 0, 1000, is_large=False
)
WIDE = FullZip(0, 0, 4096, None, 1000, 1000, e.Flat(4096), LAYERS)
NULLS = ConstantPage(None, None, None, 0, 0, (Layer.NULLABLE_ITEM,))


def single(count: int, step: int = 2) -> Rows:
    return Rows.at(np.arange(count) * step)


@pytest.mark.parametrize(
    ("rows", "pages", "chosen"),
    [
        (Rows.between(3, 4), 5, s.PAGE_RUNS),
        (Rows.between(0, 1 << 20), 5, s.PAGE_RUNS),
        (single(2), 2, s.POINT_READ),
        (single(2), 1, s.PAGE_BY_PAGE),
        (single(0), 2, s.PAGE_BY_PAGE),
        (single(s.MOST_POINT_ROWS), 2, s.POINT_READ),
        (single(s.MOST_POINT_ROWS + 1), 2, s.PAGE_BY_PAGE),
    ],
)
def test_strategy_for_columns(rows: Rows, pages: int, chosen: s.Strategy) -> None:
    assert s.for_column(rows, pages) is chosen


@pytest.mark.parametrize(
    ("rows", "chosen"),
    [
        (Rows.between(0, s.FEW_POINT_ROWS - 1), s.POINT_READ),
        (Rows.between(0, 499), s.POINT_READ),  # less than half of what the chunk holds
        (Rows.between(0, 500), s.CHUNKS),
        (single(499), s.POINT_READ),
        (single(s.MOST_POINT_ROWS + 1, 1), s.CHUNKS),
    ],
)
def test_strategy_for_chunks(rows: Rows, chosen: s.Strategy) -> None:
    first_rows, chunks = np.array([0, 1000, 2000]), np.array([0])
    assert s.for_chunks(rows, first_rows, chunks, recipe_of(DIGESTS), 8) is chosen
    assert s.for_chunks(rows, first_rows, chunks, None, 8) is s.CHUNKS


@pytest.mark.parametrize(
    ("layout", "row_bytes", "most"),
    [
        (PLAIN, 8, s.MOST_POINT_NUMBERS),
        (VECTORS, 64, s.MOST_POINT_NUMBERS),
        (STRINGS, s.SHORT_BYTES + 1, s.MOST_POINT_STRINGS),
        (STRINGS, s.SHORT_BYTES, 2 * s.MOST_POINT_STRINGS),
    ],
)
def test_strategy_for_adjacent_numbers_or_strings(
    layout: MiniBlock, row_bytes: int, most: int
) -> None:
    recipe = recipe_of(layout)
    for count, chosen in ((most, s.POINT_READ), (most + 1, s.CHUNKS)):
        one_chunk = np.array([0, count])
        given = Rows.between(0, count), one_chunk, one_chunk[:1], recipe, row_bytes
        assert s.for_chunks(*given) is chosen


def test_strategy_joins_small_pages_read_whole() -> None:
    run_rows = s.rows_of_run(8)
    assert run_rows == s.RUN_BYTES // 8
    assert s.may_join_run(run_rows // s.SMALL_PAGES, run_rows // s.SMALL_PAGES, run_rows)
    assert not s.may_join_run(
        run_rows // s.SMALL_PAGES + 1, run_rows // s.SMALL_PAGES + 1, run_rows
    )
    assert not s.may_join_run(9, 10, run_rows)
    assert s.rows_of_run(1 << 30) == 1


def test_strategy_limits_of_entries_and_cached_levels() -> None:
    assert s.reads_entries_at_once(Rows.between(0, s.FEW_ENTRIES))
    assert not s.reads_entries_at_once(Rows.between(0, s.FEW_ENTRIES + 1))
    assert not s.reads_entries_at_once(single(2))
    assert s.keeps_levels(single(2), 100, s.KEPT_LEVEL_BYTES)
    assert not s.keeps_levels(single(2), 100, s.KEPT_LEVEL_BYTES + 1)
    assert not s.keeps_levels(Rows.between(0, 100), 100, 8)


def test_strategy_descriptions() -> None:
    def words(rows: Rows, *layouts: object, total: int = 9, runs: int = 1) -> tuple[str, str]:
        text = s.describe(rows, [(layout, 1000) for layout in layouts], total, runs)  # type: ignore[misc]
        how, why = text.split(": ")
        return how, why

    whole, few = Rows.between(0, 1000), single(3)
    how, why = words(few, PLAIN, PLAIN)
    assert how == "point read by one kernel call (2 of 9 pages)"
    assert str(s.MOST_POINT_ROWS) in why
    assert str(s.FEW_POINT_ROWS) in why
    assert words(few, PLAIN, RUNS)[0] == "pages side by side (2 of 9 pages)"
    how, why = words(few, WIDE, total=1)
    assert how == "values one by one, found in the row index (1 page)"
    assert str(s.FEW_ENTRIES) in why
    assert words(few, NULLS, total=1)[0] == "levels only (1 page)"
    assert words(whole, PLAIN, total=1) == (
        "all chunks along with their index (1 page)",
        "all rows of the page",
    )
    assert words(Rows.between(0, 900), DIGESTS, total=1)[0] == (
        "chunks that hold the rows, unpacked whole (1 page)"
    )
    how, why = words(Rows.between(0, 3000), PLAIN, PLAIN, RUNS, runs=2)
    assert how == "whole pages, neighbours decoded as one (3 of 9 pages, 2 runs)"
    assert "1 MiB" in why
    assert s.describe(single(0), [], 9, 1) == "nothing to read"


def test_open_file_explains_its_strategy_per_field() -> None:
    store, rows = MemoryStore(), 100
    kind = pa.struct([("n", pa.int64()), ("w", pa.list_(pa.string()))])
    schema = schema_from_arrow(pa.schema([("c", kind)]))
    limits = PageLimits(cache_bytes=1)
    with create_data_file(store.open_writer("f.lance"), schema, V2_1, limits=limits) as writer:
        for page in range(3):
            values = [{"n": n, "w": [f"{page} {n}"]} for n in range(rows)]
            writer.write(pa.record_batch([pa.array(values, kind)], names=["c"]))
        writer.finish()
    source = store.open("f.lance")
    file = open_data_file(source)
    reader = file.field_reader(file.schema.fields[0], file.column_of)
    assert isinstance(reader, FieldReader)

    def words(wanted: Rows) -> list[str]:
        lines = run(reader.describe(wanted), source.read)
        return [line[: line.rindex(":")] for line in lines]

    assert words(Rows.between(0, 3 * rows)) == [
        "c.n: whole pages, neighbours decoded as one (3 of 3 pages, 1 run)",
        "c.w.item: whole pages, neighbours decoded as one (3 of 3 pages, 1 run)",
    ]
    assert words(Rows.at(np.array([1, 250]))) == [
        "c.n: point read by one kernel call (2 of 3 pages)",
        "c.w.item: point read by one kernel call (2 of 3 pages)",
    ]
    assert words(Rows.between(rows, rows + 3))[0] == (
        "c.n: point read by one kernel call (1 of 3 pages)"
    )


@pytest.mark.parametrize(
    ("layout", "row_bytes", "most"),
    [
        (PLAIN, 8, s.MOST_JOINED),
        (VECTORS, 64, s.MOST_JOINED),
        (DIGESTS, 16, s.MOST_JOINED),
        (STRINGS, s.SHORT_BYTES, 2 * s.MOST_POINT_STRINGS),
        (STRINGS, s.SHORT_BYTES + 1, s.MOST_POINT_STRINGS),
        (replace(PLAIN, values=e.Flat(1)), 1, s.MOST_POINT_NUMBERS),
        (
            replace(PLAIN, rep=e.Flat(16), layers=(Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST)),
            8,
            s.MOST_POINT_NUMBERS,
        ),
    ],
)
def test_most_rows_of_each_file_depend_on_its_values(
    layout: MiniBlock, row_bytes: int, most: int
) -> None:
    recipe = recipe_of(layout)
    assert recipe is not None
    assert s.most_of_each_file(recipe, row_bytes) == most
