"""Files of 2.1 and 2.2 by the oracle: every type costs two rounds for a row at most, then one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.rows import Rows
from pennon.file.reader import DataFile
from pennon.io import open_store
from pennon.testing import CountingStore
from tests.interop.equality import difference
from tests.interop.null_structs import with_null_structs
from tests.interop.oracle import Oracle
from tests.interop.random_arrays import random_array
from tests.interop.random_tables import as_lance_reads
from tests.interop.test_point_reads_2_0 import TYPES

ROWS = 20_000
WIDE = pa.list_(pa.float32(), 768)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("nulls", ["none", "some", "all"])
def test_a_row_costs_two_rounds_then_one(
    newest: Oracle, tmp_path: Path, nulls: str, version: str
) -> None:
    """The first row of a page takes a round for where its chunks lie; that is remembered."""
    rng = np.random.default_rng(21)
    store = CountingStore(open_store(tmp_path))
    for number, t in enumerate(TYPES):
        array = random_array(rng, t, ROWS, nulls)
        if nulls == "some" and not isinstance(t, pa.BaseExtensionType) and t != pa.struct([]):
            array = with_null_structs(rng, array)
        table = pa.table({"c": array})
        path = tmp_path / f"{number}.lance"
        newest.call("write_file", path=str(path), table=table, version=version)
        file = DataFile.open(store.open(path.name))
        for row in (0, 1, 12_345, ROWS - 1):
            for most in (2, 1):
                store.reset()
                ((chunk,),) = file.read_rows(
                    file.schema.fields, file.column_of, Rows.between(row, row + 1)
                )
                assert store.counts.rounds <= most, (t, row, store.counts)
                got = pa.table({"c": chunk})
                assert difference(got, as_lance_reads(table.slice(row, 1))) is None, (t, row)
        path.unlink()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_wide_values(newest: Oracle, tmp_path: Path, version: str) -> None:
    """Vectors take one round and not a byte too many; long text two, its own bytes and two ends."""
    store = CountingStore(open_store(tmp_path))
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(np.arange(768 * 100, dtype="f4")), type=WIDE
    )
    texts = pa.array([f"{row:03}" * 400 for row in range(100)])
    path = tmp_path / "x.lance"
    for array, rounds, most_bytes in ((vectors, 1, 768 * 4), (texts, 2, 2400)):
        newest.call("write_file", path=str(path), table=pa.table({"c": array}), version=version)
        file = DataFile.open(store.open(path.name))
        file.columns()
        store.reset()
        ((chunk,),) = file.read_rows(file.schema.fields, file.column_of, Rows.between(50, 51))
        assert chunk.equals(array.slice(50, 1))
        assert store.counts.rounds == rounds
        assert store.counts.asked_bytes <= most_bytes
        path.unlink()
