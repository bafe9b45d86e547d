"""Entries of indices in a manifest that do not fit the table: listed, left out of compactions, never believed."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import LanceError
from pennon.ops.commit import commit_on
from pennon.table.indices_wire import parse_indices, rewritten
from pennon.table.operations import CreateIndex

ROWS = 60
KINDS = {
    "k": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "s": ("BTREE", "NGRAM", "INVERTED"),
    "l": ("LABEL_LIST",),
    "v": ("IVF_FLAT", "IVF_SQ", "IVF_HNSW_FLAT"),
}
CASES = [(column, kind) for column, kinds in KINDS.items() for kind in kinds]


CONDITIONS = ("k = 5", "s = 'word 5'", "array_has(l, 'c')", "contains(s, 'ord 5')")


def make(uri: str, column: str, kind: str) -> Any:
    vectors = pa.array([[float(n % 13), float(n)] for n in range(ROWS)], pa.list_(pa.float32(), 2))
    table = pa.table(
        {
            "k": pa.array(range(ROWS), pa.int32()),
            "s": [f"word {n % 7}" for n in range(ROWS)],
            "l": [["a", "b"] if n % 2 else ["c"] for n in range(ROWS)],
            "v": vectors,
            "id": range(ROWS),
        }
    )
    dataset: Any = pennon.write_dataset(table, uri, max_rows_per_file=20)
    dataset.create_scalar_index("id", "BTREE")
    more = {"num_partitions": 1} if kind.startswith("IVF") else {}
    return dataset.create_index(column, kind, "x", **more)


def change(uri: str, **fields: Any) -> None:
    """Commit the entry of the index ``x`` with other fields."""
    snapshot = pennon.dataset(uri).snapshot
    (entry,) = (each for each in parse_indices(snapshot.manifest.indices) if each.name == "x")
    changed = rewritten(dataclasses.replace(entry, **fields))
    commit_on(snapshot, CreateIndex((changed,), (entry,)))


@pytest.mark.parametrize(("column", "kind"), CASES)
def test_index_entry_of_wrong_column_does_not_affect_other_indices(
    tmp_path: Path, column: str, kind: str
) -> None:
    warnings.simplefilter("ignore")
    made = make(str(tmp_path / "made"), column, kind)
    for other in {"k", "s", "l", "v"} - {column}:
        uri = str(tmp_path / other)
        shutil.copytree(tmp_path / "made", uri)
        change(uri, field_ids=(made.lance_schema.field(other).id(),))
        assert {each.name for each in pennon.dataset(uri).describe_indices()} == {"id_idx", "x"}
        for call in (
            lambda ds: ds.index_statistics("x"),
            lambda ds: ds.prewarm_index("x"),
            lambda ds: ds.to_table(nearest={"column": "v", "q": [1.0, 2.0], "k": 3}),
            lambda ds: ds.to_table(full_text_query="word"),
        ):
            with contextlib.suppress(LanceError):
                call(pennon.dataset(uri))
        dataset = pennon.dataset(uri)
        dataset.delete("id = 7")
        for condition in CONDITIONS:
            if kind == "BLOOMFILTER" and condition.startswith("s ="):
                continue  # its files do not say which values they are of
            rows = dataset.to_table(["id"], filter=condition)
            assert rows == dataset.to_table(["id"], filter=condition, use_scalar_index=False)
        dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
        pennon.write_dataset(dataset.to_table().slice(0, 5), uri, mode="append")
        pennon.dataset(uri).optimize.optimize_indices()
        dataset = pennon.dataset(uri)
        assert dataset.index_statistics("id_idx")["num_unindexed_rows"] == 0
        assert dataset.count_rows("id < 10") == 9 + 5


@pytest.mark.parametrize("milliseconds", [2**64 - 1, 2**62, 253402300800000])
def test_index_entry_with_invalid_creation_time_is_listed(
    tmp_path: Path, milliseconds: int
) -> None:
    uri = str(tmp_path / "t")
    make(uri, "k", "BTREE")
    change(uri, created_at_ms=milliseconds)
    dataset = pennon.dataset(uri)
    index = dataset.describe_indices()[1]
    assert [each.created_at for each in index.segments] == [None]
    with pytest.warns(DeprecationWarning, match="list_indices"):
        assert dataset.list_indices()[1]["name"] == "x"
    assert dataset.get_transactions(1)[0] is not None
