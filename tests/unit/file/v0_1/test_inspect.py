"""Every byte of a file of version 0.1 has an owner."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from pennon.file.container.write_limits import RowGroups
from pennon.file.inspect import inspect_pages
from pennon.file.open import create_data_file
from pennon.io.memory import MemoryStore
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import V0_1

TABLE = pa.table(
    {
        "n": pa.array(range(10), pa.int32()),
        "t": [f"row {n}" for n in range(10)],
        "b": [n % 2 == 0 for n in range(10)],
        "l": pa.array([["x"] * (n % 3) for n in range(10)], pa.large_list(pa.string())),
        "s": [{"v": n, "w": None} for n in range(10)],
        "d": pa.array(["p", "q"] * 5).dictionary_encode(),
        "i": pa.array([3, 4] * 5).dictionary_encode(),
        "f": pa.array([[1, 2]] * 10, pa.list_(pa.int8(), 2)),
    }
)


@pytest.mark.parametrize("group", [3, 100])
def test_the_ranges_tile_the_file(group: int) -> None:
    store = MemoryStore()
    sink, schema = store.open_writer("a"), schema_from_arrow(TABLE.schema)
    writer = create_data_file(sink, schema, V0_1, groups=RowGroups(max_rows=group))
    for batch in TABLE.to_batches():
        writer.write(batch)
    size_bytes = writer.finish().size_bytes
    found = inspect_pages(store.open("a"))
    assert (found.version, found.rows) == ("0.1", 10)
    assert found.ranges[0].start == 0
    assert found.ranges[-1].end == size_bytes
    assert all(one.end == other.start for one, other in pairwise(found.ranges))
    kinds = {each.kind for each in found.ranges}
    assert kinds >= {"values", "bytes", "positions", "offsets", "indices", "dictionary"}
    assert kinds >= {"page table", "statistics", "statistics table", "manifest", "metadata"}
    assert "unclaimed" not in kinds
    groups = -(-10 // group)
    assert [page.layout for page in found.pages[::groups][:5]] == [
        *("values", "binary", "values", "offsets", "binary"),
    ]
    assert sum(page.rows for page in found.pages[:groups]) == 10
