"""Adding columns holds a few batches, not the fragment: peak memory is measured, in a child."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.limits.test_memory import MIB, TABLE_BYTES, WRITE, run

COLUMNS_BYTES = 600 * MIB
"""Measured: 430 to 510 MiB on two processors, of a table of 2 GiB."""

FUNCTION = """
import pyarrow.compute as pc

def negated(batch):
    vectors = batch["vector"]
    values = pc.negate(vectors.flatten())
    return pa.record_batch({"negated": pa.FixedSizeListArray.from_arrays(values, 64)})

dataset = pennon.dataset(sys.argv[1])
dataset.add_columns(negated, read_columns=["vector"])
report(size=sum(f.data_files()[1].file_size_bytes for f in dataset.get_fragments()))
"""

CAST = """
dataset = pennon.dataset(sys.argv[1])
dataset.alter_columns({"path": "text", "data_type": pa.large_string()})
dataset.add_columns({"next": "id + 1", "upper": "upper(text)"})
report(size=len(dataset.get_fragments()))
"""


@pytest.mark.slow
def test_columns_of_a_table_larger_than_memory(tmp_path: Path) -> None:
    """Rows are deleted in between, so new columns are spread over their places."""
    uri = tmp_path / "large.lance"
    run(WRITE, uri, "2.1")
    run("pennon.dataset(sys.argv[1]).delete('id % 10 = 3'); report()", uri)
    made = run(FUNCTION, uri)
    assert made["size"] > TABLE_BYTES // 4
    assert made["peak"] < COLUMNS_BYTES
    assert run(CAST, uri)["peak"] < COLUMNS_BYTES
