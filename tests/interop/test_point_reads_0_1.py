"""Rows of files of version 0.1: every type, and never more than two requests a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.file.open import open_data_file
from pennon.io import open_store
from pennon.testing import CountingStore
from tests.interop.equality import difference
from tests.interop.oracle import Oracle
from tests.interop.random_arrays import random_array
from tests.interop.random_types import EXTENSIONS, FIXED, TEXTS

ROWS = 20_000
TYPES = [
    *FIXED,
    *TEXTS,
    *EXTENSIONS,
    pa.null(),
    pa.list_(pa.int32()),
    pa.large_list(pa.bool_()),
    pa.list_(pa.string()),
    pa.list_(pa.list_(pa.int16())),
    pa.list_(pa.list_(pa.binary())),
    pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])),
    pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.list_(pa.string()))]),
    pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.bool_())]))]),
    pa.list_(pa.float32(), 4),
    pa.list_(pa.bool_(), 9),
    pa.list_(pa.list_(pa.int8(), 2), 3),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.int64()),
    pa.list_(pa.dictionary(pa.int16(), pa.string())),
]


@pytest.mark.parametrize("group", [1024, 8000, 20_000])
def test_one_row_costs_two_requests(newest: Oracle, tmp_path: Path, group: int) -> None:
    """All types in one run: a table of one column each."""
    rng = np.random.default_rng(1)
    store = CountingStore(open_store(tmp_path))
    for number, data_type in enumerate(TYPES):
        uri = tmp_path / str(number)
        table = pa.table({"c": random_array(rng, data_type, ROWS, "none")})
        newest.write(uri, table, data_storage_version="legacy", max_rows_per_group=group)
        (path,) = (uri / "data").iterdir()
        wanted = newest.scan(uri)
        file = open_data_file(store.open(f"{number}/data/{path.name}"))
        for row in (0, 1, 12_345, ROWS - 1):
            before = open_data_file(store.open(f"{number}/data/{path.name}")) if row == 1 else file
            store.reset()
            ((chunk,),) = before.read_rows(
                file.schema.fields, file.column_of, Rows.between(row, row + 1)
            )
            counts = store.counts
            assert counts.requests <= 2, (data_type, row, counts)
            assert counts.rounds <= 2, (data_type, row, counts)
            chunk.validate(full=True)
            assert difference(pa.table({"c": chunk}), wanted.slice(row, 1)) is None
