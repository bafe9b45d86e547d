"""Point reads of 2.0 files of pylance: every type, at most two requests a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.file.open import open_container_file
from pennon.io import open_store
from pennon.testing import CountingStore
from tests.interop.equality import difference
from tests.interop.oracle import Oracle
from tests.interop.random_arrays import random_array
from tests.interop.random_types import EXTENSIONS, FIXED, TEXTS

ROWS = 50_000
ITEM = pa.list_(pa.int32())
TYPES = [
    *FIXED,
    *TEXTS,
    *EXTENSIONS,
    pa.null(),
    ITEM,
    pa.large_list(pa.bool_()),
    pa.list_(pa.string()),
    pa.list_(pa.list_(pa.int16())),
    pa.list_(pa.struct([("a", pa.int32()), ("b", pa.int8())])),
    pa.struct([("a", pa.int64()), ("b", pa.int16())]),
    pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.bool_())]))]),
    pa.struct([]),
    pa.list_(pa.float32(), 4),
    pa.list_(pa.bool_(), 9),
    pa.list_(pa.list_(pa.int8(), 2), 3),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.int64()),
]


@pytest.mark.parametrize("nulls", ["none", "some", "all"])
def test_one_row_costs_two_requests(newest: Oracle, tmp_path: Path, nulls: str) -> None:
    """All types in one run: a file of one column each."""
    rng = np.random.default_rng(20)
    store = CountingStore(open_store(tmp_path))
    for number, data_type in enumerate(TYPES):
        table = pa.table({"c": random_array(rng, data_type, ROWS, nulls)})
        path = tmp_path / f"{number}.lance"
        newest.call("write_file", path=str(path), table=table, version="2.0")
        file = open_container_file(store.open(path.name))
        for row in (0, 1, 31_999, ROWS - 1):
            store.reset()
            ((chunk,),) = file.read_rows(
                file.schema.fields, file.column_of, Rows.between(row, row + 1)
            )
            counts = store.counts
            assert counts.requests <= 2, (data_type, row, counts)
            assert counts.rounds <= 2, (data_type, row, counts)
            chunk.validate()
            assert difference(pa.table({"c": chunk}), table.slice(row, 1)) is None
        path.unlink()


def test_opening_costs_one_request(newest: Oracle, tmp_path: Path) -> None:
    table = pa.table({f"c{number}": [1, 2, 3] for number in range(50)})
    path = tmp_path / "x.lance"
    newest.call("write_file", path=str(path), table=table, version="2.0")
    store = CountingStore(open_store(tmp_path))
    file = open_container_file(store.open("x.lance"))
    file.columns()
    assert (store.counts.rounds, store.counts.requests) == (1, 1)
