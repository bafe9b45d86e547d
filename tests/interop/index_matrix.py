"""One table with an index of every kind, and all operations that rewrite or move rows.

`check` compares what indices answer with what a scan answers, in Pennon and in pylance.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import lance
import lance.file
import lance.indices
import numpy as np
import pyarrow as pa

import pennon
import pennon.indices
from pennon.fragment import DataFile
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import FileVersion
from pennon.table.indices import FRAGMENT_REUSE

ROWS: Final = 320
FRAGMENT_ROWS: Final = 80
WIDTH: Final = 16
SCALARS: Final[Mapping[str, Any]] = {
    "bt": ("btree", {"zone_size": 16}),
    "bm": "BITMAP",
    "ll": "LABEL_LIST",
    "ng": "NGRAM",
    "zm": ("zonemap", {"rows_per_zone": 16}),
    "bf": ("bloomfilter", {"number_of_items": 16}),
    "ft": "INVERTED",
    "js": ("json", {"path": "a", "target_index_type": "btree"}),
}
JSON: Final = "js"
"""pylance 14 makes no BTREE on a path of JSON where row ids are stable, and cannot optimize other kinds on one."""
VECTORS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "vf": ("IVF_FLAT", {}),
    "vp": ("IVF_PQ", {"num_sub_vectors": WIDTH}),
    "vs": ("IVF_SQ", {}),
    "vr": ("IVF_RQ", {"num_bits": 8}),
    "hf": ("IVF_HNSW_FLAT", {}),
    "hp": ("IVF_HNSW_PQ", {"num_sub_vectors": WIDTH}),
    "hs": ("IVF_HNSW_SQ", {}),
}
PARTITIONS: Final = 2


def rows(first: int, count: int) -> pa.Table:
    """Return rows of which each column's value differs from that of the rows beside it."""
    numbers = range(first, first + count)
    vectors = np.stack([np.random.default_rng(n).normal(size=WIDTH) for n in numbers])
    flat = pa.array(vectors.astype(np.float32).ravel())
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "bt": pa.array([n * 37 % 23 for n in numbers], pa.int64()),
            "bm": [f"b{n * 31 % 11}" for n in numbers],
            "ll": [[f"x{n % 7}", f"y{n * 13 % 5}"] for n in numbers],
            "ng": [f"text {_word(n % 13)} and {_word(n % 9)}" for n in numbers],
            "zm": pa.array([n * 53 % 101 for n in numbers], pa.int64()),
            "bf": pa.array([n * 41 % 61 for n in numbers], pa.int64()),
            "ft": [f"common token{n % 17} other{n * 7 % 10}" for n in numbers],
            "js": pa.array([json.dumps({"a": n * 29 % 19}) for n in numbers], pa.json_()),
            "plain": pa.array([n * 3 for n in numbers], pa.int64()),
        }
    )
    for name in VECTORS:
        table = table.append_column(name, pa.FixedSizeListArray.from_arrays(flat, WIDTH))
    return table


def _word(number: int) -> str:
    return "abcdefghijklmnop"[number] * 4


CONDITIONS: Final = (
    "bt = 5",
    "bt BETWEEN 3 AND 9",
    "bt = 1007",
    "bm = 'b3'",
    "bm IN ('b1', 'new')",
    "NOT bm = 'b5'",
    "array_has(ll, 'x3')",
    "array_has_all(ll, ['x1', 'y2'])",
    "contains(ng, 'cccc')",
    "contains(ng, 'new one')",
    "zm > 60 AND zm < 75",
    "zm = 1007",
    "bf = 7",
    "bf = 40",
    "bf = 1007",
    "json_get_int(js, 'a') = 4",
    "bt = 5 AND bm != 'b2'",
    "bt = 5 OR bf = 9",
)
"""Each asks an index, and says little of the columns that the indices are not on."""
TOKENS: Final = ("token3", "token11", "other4", "new", "common")


def make_table(folder: str, maker: Any, *, stable: bool) -> None:
    """Write the table, and let a library make all indices."""
    data = rows(0, ROWS)
    lance.write_dataset(
        data,
        folder,
        max_rows_per_file=FRAGMENT_ROWS,
        enable_stable_row_ids=stable,
        data_storage_version="2.1",
    )
    make_indices(folder, maker, stable=stable)


def make_indices(folder: str, maker: Any, *, stable: bool) -> None:
    """Let a library make an index of every kind."""
    configs: Any = {lance: lance.indices.IndexConfig, pennon: pennon.indices.IndexConfig}
    for column, kind in SCALARS.items():
        if stable and column == JSON:
            continue
        chosen = configs[maker](*kind) if isinstance(kind, tuple) else kind
        maker.dataset(folder).create_scalar_index(column, chosen)
    for column, (name, options) in VECTORS.items():
        maker.dataset(folder).create_index(column, name, num_partitions=PARTITIONS, **options)


# --- what is checked ------------------------------------------------------------------------------


def check(dataset: Any) -> list[str]:
    """Return where a table's indices, asked by the library that opened it, answer otherwise than a scan.

    pylance 14 searches no graph once a deferred compaction has dropped rows: ledger F-700.
    """
    names = set(dataset.schema.names)
    if isinstance(dataset, lance.LanceDataset) and has_moves(dataset):
        names -= {name for name, (kind, _) in VECTORS.items() if "HNSW" in kind}
    wrong = [*_filters(dataset, names), *_texts(dataset, names)]
    live = dataset.to_table(columns=["id", *sorted(names & set(VECTORS))])
    for column in sorted(names & set(VECTORS)):
        wrong += _vectors(dataset, column, live)
    return wrong


def has_moves(dataset: Any) -> bool:
    """Return whether a table has a fragment reuse index."""
    return any(each.name == FRAGMENT_REUSE for each in dataset.describe_indices())


def _filters(dataset: Any, names: set[str]) -> Iterator[str]:
    for condition in CONDITIONS:
        if not all(word in names for word in _columns_of(condition)):
            continue
        plain = ids(dataset.to_table(["id"], filter=condition, use_scalar_index=False))
        found = ids(dataset.to_table(["id"], filter=condition))
        if found != plain:
            yield f"{condition}: {len(found)} rows, and a scan finds {len(plain)}"
        elif dataset.count_rows(condition) != len(plain):
            yield f"{condition}: counts {dataset.count_rows(condition)}, and a scan {len(plain)}"


def _columns_of(condition: str) -> set[str]:
    words = condition.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return {word for word in words if word in SCALARS}


def _texts(dataset: Any, names: set[str]) -> Iterator[str]:
    if "ft" not in names:
        return
    texts = dataset.to_table(columns=["id", "ft"])
    for token in TOKENS:
        pairs = zip(texts["id"].to_pylist(), texts["ft"].to_pylist(), strict=True)
        plain = sorted(n for n, text in pairs if text is not None and token in text.split())
        query: Any = {"query": token, "columns": ["ft"]}
        table = dataset.to_table(["id", "_score"], full_text_query=query, limit=100_000)
        found = ids(table)
        if found != plain:
            yield f"{token!r} in ft: {len(found)} rows, and {len(plain)} have it"


def _vectors(dataset: Any, column: str, live: pa.Table) -> Iterator[str]:
    """Check that the nearest of all rows are all rows, and that the first ones are what a scan finds.

    More are asked for than there are: pylance 14 counts rows that are gone among the nearest, ledger F-701.
    """
    keys = live["id"].to_pylist()
    matrix = np.stack([np.array(each) for each in live[column].to_pylist()])
    many = 4 * len(keys)
    query = {"column": column, "k": many, "nprobes": PARTITIONS, "ef": many}
    middle = np.full(WIDTH, 0.1, np.float32)
    found = ids(dataset.to_table(["id", "_distance"], nearest={**query, "q": middle}))
    if found != sorted(keys):
        lost, more = set(keys) - set(found), len(found) - len(set(found))
        yield f"nearest in {column}: {len(found)} rows of {len(keys)}, {len(lost)} lost, {more} twice"
        return
    for at in range(3, len(keys), max(len(keys) // 5, 1)):
        asked = {**query, "q": matrix[at].astype(np.float32), "k": 12}
        near = dataset.to_table(["id", "_distance"], nearest=asked)["id"].to_pylist()
        distances = ((matrix - matrix[at]) ** 2).sum(1)
        best = {keys[each] for each in np.argsort(distances, kind="stable")[:2]}
        if not best & set(near):
            yield f"nearest in {column} to the vector of row {keys[at]}: {near}"


def ids(table: pa.Table) -> list[int]:
    """Return the ids of rows, in order."""
    return sorted(table["id"].to_pylist())


# --- operations -----------------------------------------------------------------------------------

Operation = Callable[[Any, str], None]
"""Is called with `pennon` or `lance`, and the folder of a table."""


def delete(it: Any, folder: str) -> None:
    """Delete rows of every fragment, the first one among them."""
    it.dataset(folder).delete("id % 9 = 0")


def delete_fragment(it: Any, folder: str) -> None:
    """Delete all rows of the first fragment."""
    low = min(
        lance.dataset(folder).get_fragments()[0].to_table(columns=["id"])["id"].to_pylist(),
        default=0,
    )
    it.dataset(folder).delete(f"id >= {low} AND id < {low + FRAGMENT_ROWS}")


def append(it: Any, folder: str) -> None:
    """Append new rows."""
    newest = max(lance.dataset(folder).to_table(columns=["id"])["id"].to_pylist(), default=0)
    it.write_dataset(
        rows(newest + 1, 30).select(lance.dataset(folder).schema.names), folder, mode="append"
    )


CHANGED: Final = {
    "bt": "1007",
    "bm": "'new'",
    "ng": "'new one'",
    "zm": "1007",
    "bf": "1007",
    "ft": "'new'",
}


def update(it: Any, folder: str) -> None:
    """Give some rows new values of all columns that a text can give."""
    it.dataset(folder).update(dict(CHANGED), where="id % 8 = 3")


def update_one_column(it: Any, folder: str) -> None:
    """Move rows, of which one column changes."""
    it.dataset(folder).update({"bt": "1007"}, where="id % 7 = 2")


def update_unindexed(it: Any, folder: str) -> None:
    """Move rows, of which no column with an index changes."""
    it.dataset(folder).update({"plain": "plain + 1"}, where="id % 6 = 1")


def update_all(it: Any, folder: str) -> None:
    """Move all rows."""
    it.dataset(folder).update({"bt": "bt + 1"})


def upsert(it: Any, folder: str) -> None:
    """Give some rows the values of others, and insert some."""
    data = rows(100_000, 20)
    keys = pa.array([*range(70, 85), *range(2000, 2005)], pa.int64())
    data = data.set_column(0, "id", keys).select(it.dataset(folder).schema.names)
    builder = it.dataset(folder).merge_insert("id")
    builder.when_matched_update_all().when_not_matched_insert_all().execute(data)


def update_columns(it: Any, folder: str) -> None:
    """Give the first fragment new values of two columns, in files of their own."""
    dataset = it.dataset(folder)
    first = dataset.get_fragments()[0]
    keys = first.to_table(columns=["id"])["id"].to_pylist()[5:25]
    data = pa.table(
        {"id": pa.array(keys, pa.int64()), "bt": [1007] * len(keys), "bm": ["new"] * len(keys)}
    )
    changed, fields = first.update_columns(data.to_reader(), "id", "id")[:2]
    operation = it.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    it.LanceDataset.commit(folder, operation, read_version=dataset.version)


def merge_columns(it: Any, folder: str) -> None:
    """Let a merge of a few columns write column files."""
    if it is lance:
        data = pa.table({"id": pa.array(range(70, 85), pa.int64()), "bt": [1007] * 15})
        it.dataset(folder).merge_insert("id").when_matched_update_all().execute(data)
        return
    data = pa.table({"id": pa.array(range(70, 85), pa.int64()), "bt": [1007] * 15})
    builder = it.dataset(folder).merge_insert("id").when_matched_update_all()
    builder.write_mode("rewrite_columns").execute(data)


def add_columns(it: Any, folder: str) -> None:
    """Add a column, then compact: files of columns become one again."""
    it.dataset(folder).add_columns({f"c{it.dataset(folder).version}": "plain + 1"})


def rename(it: Any, folder: str) -> None:
    """Rename a column, and back."""
    it.dataset(folder).alter_columns({"path": "bt", "name": "other"})
    it.dataset(folder).alter_columns({"path": "other", "name": "bt"})


def cast(it: Any, folder: str) -> None:
    """Give a column with an index another type."""
    it.dataset(folder).alter_columns({"path": "bf", "data_type": pa.int32()})


def drop_column(it: Any, folder: str) -> None:
    """Drop a column with an index."""
    it.dataset(folder).drop_columns(["zm"])


def compact(it: Any, folder: str) -> None:
    """Make one fragment of all, indices included."""
    it.dataset(folder).optimize.compact_files(target_rows_per_fragment=10_000)


def compact_a_little(it: Any, folder: str) -> None:
    """Make fragments of about two each, and drop deleted rows."""
    it.dataset(folder).optimize.compact_files(
        target_rows_per_fragment=2 * FRAGMENT_ROWS - 20, materialize_deletions_threshold=0.0
    )


def defer(it: Any, folder: str) -> None:
    """Compact and leave the indices as they are; pylance does that with stable row ids, too."""
    if it.dataset(folder).has_stable_row_ids:
        compact_a_little(it, folder)
        return
    it.dataset(folder).optimize.compact_files(
        target_rows_per_fragment=FRAGMENT_ROWS - 1,
        materialize_deletions_threshold=0.0,
        defer_index_remap=True,
    )


def optimize(it: Any, folder: str) -> None:
    """Bring indices up to date."""
    it.dataset(folder).optimize.optimize_indices()


def new_segments(it: Any, folder: str) -> None:
    """Make segments of what no index covers."""
    it.dataset(folder).optimize.optimize_indices(num_indices_to_merge=0)


def merge_segments(it: Any, folder: str) -> None:
    """Make one segment of all."""
    it.dataset(folder).optimize.optimize_indices(num_indices_to_merge=100)


def retrain(it: Any, folder: str) -> None:
    """Make all indices anew."""
    it.dataset(folder).optimize.optimize_indices(retrain=True)


def config(it: Any, folder: str) -> None:
    """Change nothing but the table's config."""
    it.dataset(folder).update_config({"a": str(it.dataset(folder).version)})


def restore(it: Any, folder: str) -> None:
    """Make the version before the last two the newest."""
    newest = it.dataset(folder).version
    dataset = it.dataset(folder, version=max(newest - 2, _FIRST_WITH_INDICES))
    dataset.restore()


_FIRST_WITH_INDICES: Final = len(SCALARS) + len(VECTORS)


def overwrite(it: Any, folder: str) -> None:
    """Put other rows in the place of all."""
    it.write_dataset(rows(5000, 100), folder, mode="overwrite")


def convert_files(it: Any, folder: str) -> None:
    """Write all files anew, of another version."""
    convert(plan_convert(pennon.dataset(folder).snapshot.store, FileVersion.parse("2.2")))


def replace_data(it: Any, folder: str) -> None:
    """Put another file in the place of one that holds one column."""
    name = "bt"
    it.dataset(folder).drop_columns([name])
    it.dataset(folder).add_columns({name: "id % 23"})
    it.dataset(folder).create_scalar_index(name, "BTREE")
    dataset = pennon.dataset(folder)
    field = dataset.lance_schema.field(name)
    assert field is not None
    fragment = dataset.get_fragments()[0]
    file_name = f"{uuid.uuid4()}.lance"
    values = pa.table({name: pa.array([1007] * fragment.physical_rows, pa.int64())})
    path = Path(folder) / "data" / file_name
    with lance.file.LanceFileWriter(str(path), values.schema, version="2.1") as writer:
        writer.write_batch(values)
    make: Any = DataFile if it is pennon else lance.fragment.DataFile
    file = make(file_name, [field.id()], [0], 2, 1, path.stat().st_size)
    group = it.LanceOperation.DataReplacementGroup(fragment.fragment_id, file)
    operation = it.LanceOperation.DataReplacement([group])
    it.LanceDataset.commit(folder, operation, read_version=dataset.version)


OPERATIONS: Final[Mapping[str, Operation]] = {
    "compact": compact,
    "compact a little": compact_a_little,
    "defer": defer,
    "delete": delete,
    "delete fragment": delete_fragment,
    "append": append,
    "update": update,
    "update one column": update_one_column,
    "update unindexed": update_unindexed,
    "update all": update_all,
    "upsert": upsert,
    "update columns": update_columns,
    "merge columns": merge_columns,
    "add columns": add_columns,
    "rename": rename,
    "cast": cast,
    "drop column": drop_column,
    "optimize": optimize,
    "new segments": new_segments,
    "merge segments": merge_segments,
    "retrain": retrain,
    "config": config,
    "restore": restore,
    "overwrite": overwrite,
    "convert": convert_files,
    "replace data": replace_data,
}
"""All that rewrites or moves rows, or what indices say of them."""
