"""Point reads of 2.1 and 2.2 files of pylance: every type, at most two rounds for a row, then one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.dataset.lance_dataset import LanceDataset
from pennon.encoding.rows import Rows
from pennon.file.open import open_container_file
from pennon.io import open_store
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
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
        file = open_container_file(store.open(path.name))
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
def test_point_read_rounds_and_bytes_of_wide_values(
    newest: Oracle, tmp_path: Path, version: str
) -> None:
    """Vectors take one round and not a byte too many; long text two, its own bytes and two ends."""
    store = CountingStore(open_store(tmp_path))
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(np.arange(768 * 100, dtype="f4")), type=WIDE
    )
    texts = pa.array([f"{row:03}" * 400 for row in range(100)])
    path = tmp_path / "x.lance"
    for array, rounds, most_bytes in ((vectors, 1, 768 * 4), (texts, 2, 2400)):
        newest.call("write_file", path=str(path), table=pa.table({"c": array}), version=version)
        file = open_container_file(store.open(path.name))
        file.columns()
        store.reset()
        ((chunk,),) = file.read_rows(file.schema.fields, file.column_of, Rows.between(50, 51))
        assert chunk.equals(array.slice(50, 1))
        assert store.counts.rounds == rounds
        assert store.counts.asked_bytes <= most_bytes
        path.unlink()


def tables() -> dict[str, pa.Array]:
    """One column for each type of page that has a read path of its own."""
    rng = np.random.default_rng(22)
    numbers = rng.integers(0, 1 << 40, ROWS)
    words = pa.array([f"word {n % 977} of {n}" for n in numbers])
    wide = pa.array([f"{row:05}" * 100 for row in range(ROWS // 10)] * 10)
    few = pa.array([f"category {n % 20}" for n in numbers])
    lists = random_array(rng, pa.list_(pa.int64()), ROWS, "some")
    found = {f"type {n}": random_array(rng, t, ROWS, "some") for n, t in enumerate(TYPES)}
    return found | {
        "numbers": pa.array(numbers),
        "text": words,
        "wide text": wide,
        "few": few,
        "dictionary": few.dictionary_encode(),
        "lists": lists,
        "vectors": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * 64)), 64),
        "struct": pa.StructArray.from_arrays([pa.array(numbers), words, lists], ["a", "b", "c"]),
    }


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_row_costs_no_more_than_the_oracle_reads(
    newest: Oracle, tmp_path: Path, version: str
) -> None:
    """Bytes and requests of one row of one column, all that may be remembered being remembered."""
    rows = [0, 1, 12_345, ROWS - 1]
    for number, (name, array) in enumerate(tables().items()):
        folder = tmp_path / str(number)
        newest.write(folder, pa.table({"c": array}), data_storage_version=version)
        theirs = newest.call("point_reads", uri=str(folder), column="c", rows=rows)
        store = CountingStore(open_store(folder))
        table = LanceDataset.of_snapshot(str(folder), Snapshot(store, read_manifest(store)))
        for row, (requests, size_bytes) in zip(rows, theirs, strict=True):
            table.take([row])
            store.reset()
            table.take([row])
            counts = store.counts
            assert counts.asked_bytes <= size_bytes, (name, row, counts, size_bytes)
            assert counts.requests <= requests, (name, row, counts, requests)
