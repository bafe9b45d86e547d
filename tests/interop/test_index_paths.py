"""Indices of fields with dots or back-ticks in their names, made and read by Pennon and pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import pennon
import pennon.indices

ROWS = 300
MAKERS = [pennon, lance]
PATHS = {
    "BTREE": "st.`dot.leaf`",
    "BITMAP": "st.`dot.leaf`",
    "ZONEMAP": "st.`dot.leaf`",
    "BLOOMFILTER": "st.`dot.leaf`",
    "LABEL_LIST": "st.`l.l`",
    "NGRAM": "st.`t``.x`",
    "INVERTED": "st.`t``.x`",
    "JSON": "st.`j.j`",
    "IVF_FLAT": "st.`v.v`",
    "IVF_SQ": "st.`v.v`",
    "IVF_HNSW_FLAT": "st.`v.v`",
}
CONDITIONS = (
    "st.`dot.leaf` < 50",
    "st.`dot.leaf` = 57",
    "array_has_any(st.`l.l`, ['c'])",
    "contains(st.`t``.x`, 'w2 x')",
    "json_get_int(st.`j.j`, 'a') = 3",
)


TOGETHER = (
    ("BTREE", "LABEL_LIST", "NGRAM", "JSON", "IVF_FLAT"),
    ("BITMAP", "INVERTED", "IVF_SQ"),
    ("ZONEMAP", "IVF_HNSW_FLAT"),
    ("BLOOMFILTER",),
)


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    numbers = range(start, start + count)
    vectors = [[float(n * 37 % 300), float(n * 91 % 293)] for n in numbers]
    struct = pa.StructArray.from_arrays(
        [
            pa.array(numbers, pa.int64()),
            pa.array(vectors, pa.list_(pa.float32(), 2)),
            pa.array([f"w{n % 5} x" for n in numbers]),
            pa.array([["a", "b"] if n % 2 else ["c"] for n in numbers]),
            pa.array([f'{{"a": {n % 7}}}' for n in numbers], pa.json_()),
        ],
        ["dot.leaf", "v.v", "t`.x", "l.l", "j.j"],
    )
    return pa.table({"id": pa.array(numbers, pa.int64()), "st": struct})


def make(maker: Any, uri: str, kind: str) -> None:
    dataset, path = maker.dataset(uri), PATHS[kind]
    if kind.startswith("IVF"):
        dataset.create_index(path, kind, num_partitions=2)
    elif kind == "JSON":
        config: Any = {lance: IndexConfig, pennon: pennon.indices.IndexConfig}[maker]
        chosen = {"path": "a", "target_index_type": "btree"}
        dataset.create_scalar_index(path, config("json", chosen))
    else:
        dataset.create_scalar_index(path, kind)


def answers(reader: Any, uri: str, *, has_texts: bool) -> list[list[int]]:
    """The rows of filters, of the nearest vectors, and of texts in all columns that have an index."""
    dataset = reader.dataset(uri)
    queries: list[dict[str, Any]] = [{"filter": each} for each in CONDITIONS]
    queries.append({"nearest": {"column": "st.`v.v`", "q": [1.1, 8.3], "k": 3}})
    if has_texts:
        queries.append({"full_text_query": "w2"})
    return [sorted(dataset.to_table(["id"], **each)["id"].to_pylist()) for each in queries]


def check(uri: str, kinds: tuple[str, ...], step: str) -> None:
    ours, theirs = ([*map(str, each)] for each in (listed(pennon, uri), listed(lance, uri)))
    assert ours == theirs, step
    has_texts = "INVERTED" in kinds
    found = answers(pennon, uri, has_texts=has_texts)
    assert found == answers(lance, uri, has_texts=has_texts), step
    assert all(map(len, found)), step


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def listed(reader: Any, uri: str) -> list[Any]:
    listed = [(each["name"], each["fields"]) for each in reader.dataset(uri).list_indices()]
    described = [(each.name, each.field_names) for each in reader.dataset(uri).describe_indices()]
    assert sorted(map(str, listed)) == sorted(map(str, described))
    return described


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kinds", TOGETHER, ids="-".join)
def test_indices_of_fields_with_dots_in_their_names(
    tmp_path: Path, kinds: tuple[str, ...], *, stable: bool
) -> None:
    if stable:  # with which pylance has no index of JSON
        kinds = tuple(kind for kind in kinds if kind != "JSON")
    for maker in MAKERS:
        uri = str(tmp_path / maker.__name__)
        maker.write_dataset(rows(), uri, max_rows_per_file=100, enable_stable_row_ids=stable)
        for kind in kinds:
            make(maker, uri, kind)
        found = sorted(paths for _, paths in listed(pennon, uri))
        assert found == sorted([PATHS[kind]] for kind in kinds)
        check(uri, kinds, "made")
        dataset = pennon.dataset(uri)
        dataset.delete("id = 3")
        dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
        check(uri, kinds, "compacted")
        pennon.write_dataset(rows(ROWS, 50), uri, mode="append")
        optimize(uri)
        check(uri, kinds, "optimized")
        dataset = pennon.dataset(uri)
        dataset.update({"id": "id + 1000"}, where="st.`dot.leaf` = 7")
        check(uri, kinds, "updated")
        merge = dataset.merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all()
        merge.execute(rows(ROWS + 40, 20))
        check(uri, kinds, "merged")
        if not (stable or "IVF_HNSW_FLAT" in kinds):  # which pylance does not read afterwards
            dataset = pennon.dataset(uri)
            dataset.optimize.compact_files(defer_index_remap=True)
            check(uri, kinds, "compacted, deferred")
        optimize(uri, retrain=True)
        check(uri, kinds, "retrained")


def optimize(uri: str, **options: Any) -> None:
    pennon.dataset(uri).optimize.optimize_indices(**options)
    dataset = pennon.dataset(uri)
    for index in dataset.describe_indices():
        if not index.name.startswith("__lance"):
            assert dataset.index_statistics(index.name)["num_unindexed_rows"] == 0


def test_default_names_of_indices_are_those_of_pylance(tmp_path: Path) -> None:
    names = ("x", "a b", "a`b", "UP", "a b.c", "é.ü", "x.y`z", "_.1")
    for outer in ("s t", "S_1", "ü"):
        found = []
        for maker in MAKERS:
            uri = str(tmp_path / f"{outer} {maker.__name__}")
            struct = pa.StructArray.from_arrays([pa.array([1, 2])] * len(names), list(names))
            dataset: Any = maker.write_dataset(pa.table({outer: struct}), uri)
            for name in names:
                dataset.create_scalar_index(f"`{outer}`.`{name.replace('`', '``')}`", "BTREE")
            found.append(listed(maker, uri))
        assert found[0] == found[1]


def test_index_of_a_field_renamed_to_a_name_with_a_dot(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    dataset: Any = pennon.write_dataset(
        pa.table({"id": range(60), "st": [{"x": n, "t": f"w{n % 3}"} for n in range(60)]}),
        uri,
        max_rows_per_file=20,
    )
    dataset.create_scalar_index("st.x", "BTREE")
    dataset.create_scalar_index("st.t", "INVERTED")
    dataset.create_scalar_index("id", "BTREE")
    dataset.alter_columns({"path": "st.x", "name": "a.x"}, {"path": "st.t", "name": "b`t"})
    assert [each.field_names for each in dataset.describe_indices()] == [
        ["id"],
        ["st.`b``t`"],
        ["st.`a.x`"],
    ]
    dataset.delete("st.`a.x` = 7")
    dataset.optimize.compact_files(materialize_deletions_threshold=0.0)
    pennon.write_dataset(dataset.to_table().slice(0, 5), uri, mode="append")
    pennon.dataset(uri).optimize.optimize_indices()
    for reader in MAKERS:
        dataset = reader.dataset(uri)
        assert dataset.count_rows(filter="st.`a.x` < 10") == 9 + 5
        assert dataset.to_table(["id"], full_text_query="w2").num_rows == 20 + 1
        for name in ("st.x_idx", "st.t_idx", "id_idx"):
            assert dataset.stats.index_stats(name)["num_unindexed_rows"] == 0


def test_index_columns_in_other_case_resolve_as_in_pylance(tmp_path: Path) -> None:
    found = []
    for maker in MAKERS:
        vectors = pa.array([[float(n), 1.0] for n in range(ROWS)], pa.list_(pa.float32(), 2))
        struct = [{"Cap": n, "x": n, "X": -n} for n in range(ROWS)]
        table = pa.table({"id": range(ROWS), "st": struct, "Txt": ["a b"] * ROWS, "Vec": vectors})
        dataset: Any = maker.write_dataset(table, str(tmp_path / maker.__name__))
        for path in ("ID", "st.cap", "`ST`.x", "ST.X"):
            dataset.create_scalar_index(path, "BTREE", name=f"of {path}")
        dataset.create_scalar_index("TXT", "INVERTED")
        dataset.create_scalar_index("iD", "BITMAP")
        found.append(listed(maker, str(tmp_path / maker.__name__)))
    assert found[0][:5] == found[1][:5]
    dataset = pennon.dataset(str(tmp_path / "pennon"))
    dataset.create_index("VEC", "IVF_FLAT", num_partitions=1)
    assert dataset.describe_indices()[1].field_names == ["Vec"]
    assert dataset.centroids(column="vec") is not None
