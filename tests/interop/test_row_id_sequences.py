"""Row ids that users carry over to the rows that an update rewrote."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
import pennon.fragment
from pennon.errors import ArgumentError, UnsupportedError
from pennon.fragment import RowIdMeta, RowIdSequence
from pennon.table.fragment import ExternalFile


def test_row_id_sequence_values_and_errors() -> None:
    ids = RowIdSequence([7, 12, 3])
    assert (list(ids), len(ids), repr(ids)) == ([7, 12, 3], 3, "RowIdSequence([7, 12, 3])")
    assert ids.to_pyarrow() == pa.array([7, 12, 3], pa.uint64())
    assert RowIdSequence.from_inline_metadata(ids.to_inline_metadata()) == ids
    assert RowIdSequence(pa.array([7, 12, 3])) == pickle.loads(pickle.dumps(ids)) == ids
    assert ids != RowIdSequence([7, 12])
    assert list(RowIdSequence([])) == []
    theirs: Any = lance.fragment.RowIdSequence([7, 12, 3]).to_inline_metadata()
    assert ids.to_inline_metadata().asdict() == theirs.asdict()
    with pytest.raises(ArgumentError, match="twice"):
        RowIdSequence([1, 1])
    with pytest.raises(OverflowError):
        RowIdSequence([-1])
    with pytest.raises(UnsupportedError, match="lie in x"):
        RowIdSequence.from_inline_metadata(RowIdMeta(ExternalFile("x", 0, 1)))


@pytest.mark.parametrize("lib", [pennon, lance])
def test_an_update_by_hand_keeps_rows_by_their_ids(lib: Any, tmp_path: Path) -> None:
    """Through either library: the rewritten row keeps id and birth, the further one is new."""
    uri = str(tmp_path / "t")
    lib.write_dataset(pa.table({"a": [0, 1, 2, 3]}), uri, enable_stable_row_ids=True)
    dataset = lib.dataset(uri)
    rest = dataset.get_fragments()[0].delete("a = 2")
    new = lib.fragment.LanceFragment.create(uri, pa.table({"a": [20, 40]}))
    new.row_id_meta = lib.fragment.RowIdSequence([2]).to_inline_metadata()
    operation = lib.LanceOperation.Update([], [rest], [new], [], [0], "rewrite_rows")
    lib.LanceDataset.commit(dataset, operation, read_version=1)
    for reader in (pennon, lance):
        names = ["a", "_row_created_at_version", "_row_last_updated_at_version"]
        rows = reader.dataset(uri).to_table(columns=names, with_row_id=True)
        assert rows["a"].to_pylist() == [0, 1, 3, 20, 40]
        assert rows["_rowid"].to_pylist() == [0, 1, 3, 2, 4]
        assert rows["_row_created_at_version"].to_pylist() == [1, 1, 1, 1, 2]
        assert rows["_row_last_updated_at_version"].to_pylist() == [1, 1, 1, 2, 2]
