"""Tables that pylance has indexed, changed by Pennon: pylance's queries must not miss the change.

Pennon uses no index; all it can do is to say, for each, which fragments it still covers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import NotFoundError
from pennon.fragment import DataFile

ROWS = 60
COLUMNS: dict[str, Any] = {
    "n": "BTREE",
    "b": "BITMAP",
    "l": "LABEL_LIST",
    "t": "INVERTED",
    "z": "ZONEMAP",
}


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "k": pa.array(numbers, pa.int64()),
            "n": pa.array([7 * n % 100 for n in numbers], pa.int64()),
            "b": [f"b{n % 5}" for n in numbers],
            "l": [[f"x{n % 3}", f"y{n % 4}"] for n in numbers],
            "t": [f"word{n % 7} common" for n in numbers],
            "z": pa.array(numbers, pa.int64()),
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    place = str(tmp_path / "t")
    for number in range(3):
        lance.write_dataset(
            rows(number * ROWS, ROWS),
            place,
            mode="append" if number else "create",
            data_storage_version="2.1",
            enable_stable_row_ids=request.param,
        )
    dataset = lance.dataset(place)
    for column, kind in COLUMNS.items():
        dataset.create_scalar_index(column, kind)
    return place


QUERIES = {
    "n = 7": "n",
    "n BETWEEN 20 AND 40": "n",
    "n = -1": "n",
    "b = 'b3'": "b",
    "b IN ('b1', 'new')": "b",
    "array_has_any(l, ['x1'])": "l",
    "contains_tokens(t, 'word3')": "t",
    "z > 100 AND z < 130": "z",
    "z = 100000": "z",
}
"""SQL, and the column that it asks for."""


def check(uri: str) -> None:
    """Check that what pylance finds with its indices is what is there."""
    dataset = lance.dataset(uri)
    dataset.validate()
    names = dataset.schema.names
    for query in (query for query, column in QUERIES.items() if column in names):
        found, expected = (
            dataset.scanner(filter=query, columns=["k"], use_scalar_index=use).to_table()["k"]
            for use in (True, False)
        )
        assert sorted(found.to_pylist()) == sorted(expected.to_pylist()), query


def update(uri: str) -> None:
    pennon.dataset(uri).update({"n": "-1", "b": "'new'", "z": "100000"}, where="k % 9 = 4")


def update_one_column(uri: str) -> None:
    """The rows move, and keep the values of all columns but one."""
    pennon.dataset(uri).update({"b": "'b3'"}, where="k % 9 = 2")


def delete(uri: str) -> None:
    pennon.dataset(uri).delete("k % 4 = 1")


def upsert(uri: str) -> None:
    changed = rows(50, 20).set_column(1, "n", pa.array([-1] * 20, pa.int64()))
    builder = pennon.dataset(uri).merge_insert("k")
    builder.when_matched_update_all().when_not_matched_insert_all().execute(
        pa.concat_tables([changed, rows(1000, 5)])
    )


def columns(uri: str) -> None:
    data = pa.table(
        {"k": pa.array(range(70, 90), pa.int64()), "n": pa.array([-1] * 20, pa.int64())}
    )
    builder = pennon.dataset(uri).merge_insert("k").when_matched_update_all()
    builder.write_mode("rewrite_columns").execute(data)


def compact(uri: str) -> None:
    pennon.dataset(uri).optimize.compact_files(target_rows_per_fragment=1000)


def append(uri: str) -> None:
    pennon.write_dataset(rows(2000, 30), uri, mode="append")


def drop(uri: str) -> None:
    pennon.dataset(uri).drop_columns(["b"])


def cast(uri: str) -> None:
    change: Any = {"path": "n", "data_type": pa.int32()}
    pennon.dataset(uri).alter_columns(change)


def replace(uri: str) -> None:
    """Give fragment 0 other values of z, which lies in a file of its own."""
    dataset = pennon.dataset(uri)
    field = dataset.lance_schema.field("z")
    assert field is not None
    fragment = dataset.get_fragments()[0]
    if not any(file.fields == [field.id()] for file in fragment.data_files()):
        return
    name = f"{uuid.uuid4()}.lance"
    values = pa.table({"z": pa.array([100000] * fragment.physical_rows, pa.int64())})
    path = Path(uri) / "data" / name
    with lance.file.LanceFileWriter(str(path), values.schema, version="2.1") as writer:
        writer.write_batch(values)
    file = DataFile(name, [field.id()], [0], 2, 1, path.stat().st_size)
    group = pennon.LanceOperation.DataReplacementGroup(fragment.fragment_id, file)
    operation = pennon.LanceOperation.DataReplacement([group])
    pennon.LanceDataset.commit(dataset, operation, read_version=dataset.version)


def restore(uri: str) -> None:
    dataset = pennon.dataset(uri)
    dataset.checkout_version(dataset.version - 1).restore()


CHANGES: dict[str, list[Callable[[str], None]]] = {
    "update": [update],
    "update one column": [update_one_column, compact],
    "delete": [delete],
    "upsert": [upsert],
    "columns": [columns],
    "compact": [delete, compact],
    "all": [update, columns, compact, append, upsert, compact, delete],
    "drop and cast": [drop, cast, compact],
    "restore": [update, restore, append],
}


@pytest.mark.parametrize("name", CHANGES)
def test_queries_after_changes_of_indexed_table_by_pennon(uri: str, name: str) -> None:
    check(uri)
    for change in CHANGES[name]:
        change(uri)
        check(uri)


def test_queries_after_data_replacement_of_indexed_column(uri: str) -> None:
    lance.dataset(uri).drop_columns(["z"])
    lance.dataset(uri).add_columns({"z": "k"})
    lance.dataset(uri).create_scalar_index("z", "BTREE")
    replace(uri)
    assert lance.dataset(uri).count_rows("z = 100000") == ROWS
    check(uri)


# --- vectors, and fragments that were put off -----------------------------------------------------

WIDTH = 8
MANY = 300


def vectors(seed: int, count: int) -> pa.Array[Any]:
    values = np.random.default_rng(seed).random(count * WIDTH, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), WIDTH)


def vector_rows(first: int, count: int) -> pa.Table:
    return rows(first, count).append_column("v", vectors(first, count))


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def indexed(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    place = str(tmp_path / "v")
    for number in range(2):
        lance.write_dataset(
            vector_rows(number * MANY, MANY),
            place,
            mode="append" if number else "create",
            data_storage_version="2.1",
            enable_stable_row_ids=request.param,
        )
    dataset = lance.dataset(place)
    dataset.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    dataset.create_scalar_index("n", "BTREE")
    dataset.create_scalar_index("t", "INVERTED")
    return place


def nearest(uri: str, **options: Any) -> list[int]:
    """Return the keys of the 20 rows whose vectors are the nearest."""
    query = {"column": "v", "q": np.full(WIDTH, 0.5, np.float32), "k": 20, **options}
    found = lance.dataset(uri).to_table(nearest=query, columns=["k", "_distance"])
    return sorted(found["k"].to_pylist())


def check_vectors(uri: str) -> None:
    """Check the nearest rows, and that none is missed or found twice where all are asked for."""
    check(uri)
    if "v" not in lance.dataset(uri).schema.names:
        return
    assert nearest(uri, nprobes=2, refine_factor=50) == nearest(uri, use_index=False)
    keys = lance.dataset(uri).to_table(columns=["k"])["k"].to_pylist()
    assert nearest(uri, nprobes=2, k=10_000) == sorted(keys)


def other_vectors(uri: str) -> None:
    """In their places."""
    keys = pa.array(range(70, 90), pa.int64())
    data = pa.table({"k": keys, "v": vectors(7, 20)})
    builder = pennon.dataset(uri).merge_insert("k").when_matched_update_all()
    builder.write_mode("rewrite_columns").execute(data)


def upsert_vectors(uri: str) -> None:
    old, new = vector_rows(50, 20), vector_rows(1000, 5)
    old = old.set_column(old.schema.get_field_index("v"), "v", vectors(8, 20))
    builder = pennon.dataset(uri).merge_insert("k")
    builder.when_matched_update_all().when_not_matched_insert_all().execute(
        pa.concat_tables([old, new])
    )


def update_number(uri: str) -> None:
    pennon.dataset(uri).update({"n": "-1"}, where="k % 9 = 4")


def add_and_rename(uri: str) -> None:
    dataset = pennon.dataset(uri)
    dataset.add_columns({"w": "n + 1"})
    dataset.alter_columns({"path": "v", "name": "u"})
    dataset.alter_columns({"path": "u", "name": "v"})


def cast_number(uri: str) -> None:
    pennon.dataset(uri).alter_columns({"path": "n", "data_type": pa.int32()})


def clean(uri: str) -> None:
    pennon.dataset(uri).cleanup_old_versions(older_than=timedelta(0))


def drop_vectors(uri: str) -> None:
    pennon.dataset(uri).drop_columns(["v"])


def index_again(uri: str) -> None:
    lance.dataset(uri).optimize.optimize_indices()


def overwrite(uri: str) -> None:
    pennon.write_dataset(vector_rows(0, 20), uri, mode="overwrite")


VECTOR_CHANGES: list[Callable[[str], None]] = [
    delete,
    update_number,
    upsert_vectors,
    other_vectors,
    clean,
    compact,
    add_and_rename,
    index_again,
    cast_number,
    drop_vectors,
    restore,
    clean,
    overwrite,
]


def test_vector_queries_after_changes_of_indexed_table_by_pennon(indexed: str) -> None:
    for change in VECTOR_CHANGES:
        change(indexed)
        check_vectors(indexed)


@pytest.mark.parametrize("change", [delete, columns, other_vectors, upsert_vectors, compact, clean])
def test_indexed_table_with_deferred_remap_takes_changes(
    tmp_path: Path, change: Callable[[str], None]
) -> None:
    """pylance put off their remapping: a fragment reuse index says which took their places."""
    uri = str(tmp_path / "v")
    data = vector_rows(0, 2 * MANY)
    lance.write_dataset(data, uri, max_rows_per_file=MANY, data_storage_version="2.1")
    dataset = lance.dataset(uri)
    dataset.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    dataset.create_scalar_index("n", "BTREE")
    dataset.delete("k % 10 = 3")
    dataset.optimize.compact_files(defer_index_remap=True)
    change(uri)
    check_vectors(uri)
    names = {index.name for index in lance.dataset(uri).describe_indices()}
    assert names == {"n_idx", "v_idx", "__lance_frag_reuse"}


# --- what is said of indices ----------------------------------------------------------------------

VECTOR_KINDS: dict[str, Any] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_HNSW_SQ": {},
}
SHOWN = ["name", "type_url", "index_type", "num_rows_indexed", "fields", "field_names"]
SEGMENT = ["uuid", "dataset_version_at_last_update", "index_version", "created_at", "size_bytes"]


def described(dataset: Any) -> list[Any]:
    return [
        [getattr(index, name) for name in (*SHOWN, "total_size_bytes")]
        + [
            [getattr(segment, name) for name in SEGMENT] + [set(segment.fragment_ids)]
            for segment in index.segments
        ]
        for index in dataset.describe_indices()
    ]


def listed(dataset: Any) -> list[Any]:
    with pytest.warns(DeprecationWarning, match="list_indices"):
        return [
            each | {"fragment_ids": set(each["fragment_ids"])} for each in dataset.list_indices()
        ]


def test_index_descriptions_equal_pylance(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    data = vector_rows(0, MANY).append_column("st", pa.array([{"x y": 1}] * MANY))
    made = lance.write_dataset(data, uri, data_storage_version="2.1")
    for number, (kind, options) in enumerate(VECTOR_KINDS.items()):
        made.create_index("v", kind, name=f"v{number}", num_partitions=1, **options)
    for column, kind in COLUMNS.items():
        made.create_scalar_index(column, kind)
    append(uri)
    lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    lance.dataset(uri).create_scalar_index("st.`x y`", "BITMAP", name="nested")
    delete(uri)
    ours, theirs = pennon.dataset(uri), lance.dataset(uri)
    assert described(ours) == described(theirs)
    assert listed(ours) == listed(theirs)


def test_drop_index_of_pylance_indices(uri: str) -> None:
    dataset = pennon.dataset(uri)
    with pytest.raises(NotFoundError, match="name=x; the indices are: b_idx, l_idx, n_idx"):
        dataset.drop_index("x")
    dataset.optimize.optimize_indices(index_names=["t_idx"], retrain=True)
    check(uri)
    for name in ("n_idx", "t_idx"):
        dataset.drop_index(name)
    assert {index.name for index in dataset.describe_indices()} == {"b_idx", "l_idx", "z_idx"}
    assert described(lance.dataset(uri)) == described(dataset)
    check(uri)
