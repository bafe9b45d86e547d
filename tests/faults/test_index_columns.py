"""Index files with changed, NULL or missing columns: typed errors, or the rows of a scan."""

from __future__ import annotations

import shutil
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
import pennon.indices
from pennon.errors import LanceError
from pennon.file import LanceFileReader
from pennon.file.open import create_container_file
from pennon.io.registry import open_store
from pennon.schema import schema_from_arrow
from pennon.schema.version import V2_1

ROWS = 60
DIMENSION = 8
KINDS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "btree": ("k", "BTREE", {}),
    "btree of texts": ("s", "BTREE", {}),
    "bitmap": ("k", "BITMAP", {}),
    "label list": ("l", "LABEL_LIST", {}),
    "ngram": ("s", "NGRAM", {}),
    "zone map": ("k", "ZONEMAP", {"rows_per_zone": 10}),
    "zone map of texts": ("s", "ZONEMAP", {"rows_per_zone": 10}),
    "bloom filter": ("k", "BLOOMFILTER", {"number_of_items": 10}),
    "text": ("s", "INVERTED", {}),
    "text with positions": ("s", "INVERTED", {"with_position": True}),
    "json": ("j", "JSON", {"path": "a", "target_index_type": "btree"}),
    "ivf_flat": ("v", "IVF_FLAT", {"num_partitions": 2}),
    "ivf_sq": ("v", "IVF_SQ", {"num_partitions": 2}),
    "ivf_rq": ("v", "IVF_RQ", {"num_partitions": 2}),
    "ivf_pq": ("v", "IVF_PQ", {"num_partitions": 2, "num_sub_vectors": 2, "num_bits": 4}),
    "ivf_hnsw_flat": ("v", "IVF_HNSW_FLAT", {"num_partitions": 2}),
    "ivf_hnsw_sq": ("v", "IVF_HNSW_SQ", {"num_partitions": 2}),
}
SOME = ("btree of texts", "ngram", "zone map", "bloom filter", "text with positions")
FILTERS = {
    "k": ["k = 3", "k < 20", "k IN (1, 2)", "k IS NULL"],
    "s": ["s = 'word 3 end'", "s < 'word 4'", "contains(s, 'ord 5')", "s LIKE 'word 1%'"],
    "l": ["array_has(l, 'a')", "array_has_all(l, ['a', 'b'])"],
    "j": ["json_get_int(j, 'a') = 3"],
}


NEAREST = {"column": "v", "q": [1.0] * DIMENSION, "k": 5}


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    numbers = range(start, start + count)
    vectors = [[float((n * 37 + at * 11) % 101) for at in range(DIMENSION)] for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "k": pa.array(numbers, pa.int32()),
            "s": [f"word {n % 11} end" for n in numbers],
            "l": [["a", "b"] if n % 2 else ["c"] for n in numbers],
            "j": pa.array([f'{{"a": {n % 7}}}' for n in numbers], pa.json_()),
            "v": pa.array(vectors, pa.list_(pa.float32(), DIMENSION)),
        }
    )


def make(uri: str, kind: str) -> None:
    dataset = pennon.write_dataset(rows(), uri, max_rows_per_file=20)
    column, name, more = KINDS[kind]
    if name == "JSON":
        dataset.create_scalar_index(column, pennon.indices.IndexConfig("json", more), name="x")
    else:
        dataset.create_index(column, name, "x", **more)


def others(column: pa.Array[Any]) -> Iterator[tuple[str, pa.Array[Any] | None]]:
    """The changes that are made to a column of an index's file."""
    count = len(column)
    yield "missing", None
    yield "NULLs", pa.nulls(count, column.type)
    yield "int32", pa.array(range(count), pa.int32())
    yield "uint64", pa.array(range(count), pa.uint64())
    yield "huge", pa.array([2**64 - 1 - n for n in range(count)], pa.uint64())
    yield "texts", pa.array([f"w{n}" for n in range(count)])
    yield "bytes", pa.array([bytes([n % 256]) * 3 for n in range(count)], pa.binary())
    yield "lists", pa.array([[n] for n in range(count)], pa.list_(pa.int64()))
    yield "vectors", pa.array([[n, n] for n in range(count)], pa.list_(pa.float32(), 2))


def rewrite(path: Path, name: str, values: pa.Array[Any] | None) -> None:
    """Put other values in place of a column, or none; the rest of the file stays."""
    reader = LanceFileReader(str(path))
    table = reader.read_all().to_table().combine_chunks()
    metadata = reader.metadata()
    buffers = [reader.read_global_buffer(at) for at in range(1, len(metadata.global_buffers))]
    at = table.column_names.index(name)
    if values is None:
        table = table.remove_column(at)
    else:
        table = table.set_column(at, pa.field(name, values.type), values)
    kept = dict(metadata.schema.metadata or {})
    schema = table.schema.remove_metadata()
    sink = open_store(str(path.parent)).open_writer("new")
    with create_container_file(
        sink, schema_from_arrow(schema), V2_1, may_be_reserved=True
    ) as writer:
        writer.add_schema_metadata(kept)
        for each in buffers:
            writer.add_global_buffer(each)
        for batch in table.to_batches():
            writer.write(batch)
        writer.finish()
    (path.parent / "new").replace(path)


def columns_of(uri: str) -> Iterator[tuple[Path, str, pa.Array[Any]]]:
    found = [each for each in Path(uri, "_indices").rglob("*") if each.is_file()]
    for path in sorted(found):
        table = LanceFileReader(str(path)).read_all().to_table()
        for name in table.column_names:
            yield path.relative_to(uri), name, table[name].combine_chunks()


def faults(uri: str, kind: str) -> Iterator[str]:
    """Yield the calls that end in another error than one of Pennon's; compactions and listings may end in none."""
    column, name, _ = KINDS[kind]
    calls: dict[str, Any] = {
        "describe": lambda ds: ds.describe_indices(),
        "statistics": lambda ds: ds.index_statistics("x"),
        "prewarm": lambda ds: ds.prewarm_index("x"),
        **{each: lambda ds, each=each: ds.count_rows(each) for each in FILTERS.get(column, ())},
        "nearest": lambda ds: ds.to_table(nearest=NEAREST),
        "compact": lambda ds: ds.optimize.compact_files(),
        "optimize": lambda ds: ds.optimize.optimize_indices(),
    }
    if name == "INVERTED":
        calls["text"] = lambda ds: ds.to_table(full_text_query="word")
        calls["phrase"] = lambda ds: ds.to_table(full_text_query='"word 3"')
    for called, call in calls.items():
        if called == "optimize":
            pennon.write_dataset(rows(ROWS, 20), uri, mode="append")
        try:
            call(pennon.dataset(uri))
        except LanceError as error:
            if called in ("compact", "describe"):
                yield f"{called}: {error!r}"
        except Exception:  # noqa: BLE001 - which is what we look for
            yield f"{called}: {traceback.format_exc()}"


ALL_CHANGES = frozenset(["btree", "ivf_rq"])
"""Kinds whose columns are changed in all ways in each run; the others only in the slow one."""


@pytest.mark.parametrize("kind", SOME)
def test_numbers_and_nulls_in_columns_of_index_files(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, {"NULLs", "int32"})


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kind",
    [each if each in ALL_CHANGES else pytest.param(each, marks=pytest.mark.slow) for each in KINDS],
)
def test_index_files_with_changed_or_missing_columns(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, None)


def check(folder: Path, kind: str, names: set[str] | None) -> None:
    warnings.simplefilter("ignore")
    made = folder / "made"
    make(str(made), kind)
    found, tried = [], 0
    for number, (path, name, column) in enumerate(columns_of(str(made))):
        for other, values in others(column):
            if names is not None and other not in names:
                continue
            uri = folder / f"{number} {other}"
            shutil.copytree(made, uri)
            rewrite(uri / path, name, values)
            found += [f"{path.name}, {name}: {other}: {each}" for each in faults(str(uri), kind)]
            shutil.rmtree(uri)
            tried += 1
    assert tried
    assert not found, f"{len(found)} faults: " + "\n".join(found)


@pytest.mark.parametrize("kind", ["text", "ivf_flat", "ivf_hnsw_flat", "ivf_rq"])
def test_index_with_repeated_row_ids_returns_the_row_once(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "t"
    make(str(uri), kind)
    for path, name, column in list(columns_of(str(uri))):
        if name == "_rowid":
            rewrite(uri / path, name, pa.array([0] * len(column), pa.uint64()))
    dataset: Any = pennon.dataset(uri)
    asked = {"full_text_query": "word"} if kind == "text" else {"nearest": NEAREST}
    assert dataset.to_table(["id"], **asked)["id"].to_pylist() == [0]
