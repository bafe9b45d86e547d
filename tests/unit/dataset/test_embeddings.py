"""``LanceDataset.embed`` and ``refresh_embeddings``: vectors of a model beside all other changes of a table."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.embeddings import EmbeddingModel
from pennon.errors import ArgumentError, InvalidSchemaError, NotFoundError, UnsupportedError
from tests.unit.dataset.letters import WORDS, Letters, check, titles, vector_of


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("per_file", [60, 3])
def test_embed_adds_vectors_fingerprints_and_a_note(uri: str, version: str, per_file: int) -> None:
    model = Letters()
    ds = pennon.write_dataset(
        titles(60), uri, max_rows_per_file=per_file, data_storage_version=version
    )
    ds.embed("title", EmbeddingModel(model, "letters", "1"), batch_size=7, normalize=False)
    check(ds)
    assert (ds.version, max(model.sizes) <= 7, None in model.seen) == (2, True, False)
    assert ds.schema.field("title_vector").type == pa.list_(pa.float32(), 4)
    assert ds.schema.field("title_vector_hash").type == pa.int64()
    assert ds.embeddings()["title_vector"] == {
        "model": "letters",
        "version": "1",
        "source": "title",
        "fingerprint": "title_vector_hash",
        "dimension": 4,
        "metric": "cosine",
        "normalized": False,
    }
    note = json.loads(ds.schema.field("title_vector").metadata[b"pennon.embedding"])
    assert (note["format"], note["source_id"], note["vector_id"]) == (1, 1, 2)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("branch", [None, "work"])
def test_refresh_after_append_update_merge_delete_and_compaction_embeds_only_stale_rows(
    uri: str, stable: bool, branch: str | None
) -> None:
    model = Letters()
    ds = pennon.write_dataset(titles(40), uri, max_rows_per_file=8, enable_stable_row_ids=stable)
    ds.embed("title", model)
    if branch is not None:
        ds = ds.create_branch(branch)
    ds.insert(pa.table({"id": [100, 101], "title": ["toe", None]}))
    ds.update({"title": "'hoe'"}, where="id = 3")
    ds.update({"id": "id + 1000"}, where="id = 4")
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [5, 8, 200], "title": ["doe", "fox", "roe"]}))
    ds.delete("id IN (1, 9, 20)")
    ds.optimize.compact_files()
    ds.insert(pa.table({"id": [102], "title": ["woe"]}))
    model.seen.clear()
    assert ds.refresh_embeddings(model=model) == 5
    assert sorted(model.seen) == ["doe", "hoe", "roe", "toe", "woe"]
    check(ds)
    version = ds.version
    assert ds.refresh_embeddings(model=model) == 0
    assert ds.version == version


def test_refresh_sets_the_vector_of_a_source_that_became_null_to_null(uri: str) -> None:
    ds = pennon.write_dataset(titles(10), uri)
    ds.embed("title", Letters())
    ds.update({"title": "NULL"}, where="id < 3")
    assert ds.refresh_embeddings(model=Letters()) == 3
    check(ds)


def test_refresh_changes_the_version_of_only_stale_rows(uri: str) -> None:
    ds = pennon.write_dataset(titles(10), uri, enable_stable_row_ids=True)
    ds.embed("title", Letters())
    ds.update({"title": "'hoe'"}, where="id = 3")
    ds.optimize.compact_files()
    ds.refresh_embeddings(model=Letters())
    names = ["id", "_row_last_updated_at_version"]
    rows = dict(zip(*ds.to_table(columns=names).to_pydict().values(), strict=True))
    assert [n for n, version in rows.items() if version == ds.version] == [3]


@pytest.mark.parametrize("seed", range(6))
def test_refresh_after_random_changes_leaves_each_row_with_the_vector_of_its_title(
    uri: str, seed: int
) -> None:
    rng = random.Random(seed)
    ds = pennon.write_dataset(
        titles(30),
        uri,
        max_rows_per_file=rng.choice([2, 7, 30]),
        enable_stable_row_ids=rng.random() < 0.5,
        data_storage_version=rng.choice(["2.0", "2.1", "2.2"]),
    )
    ds.embed("title", Letters(), batch_size=rng.choice([1, 4, 1000]))

    def merge(mode: Any) -> None:
        builder = ds.merge_insert("id").when_matched_update_all()
        builder.write_mode(mode)
        ids = rng.sample(range(60), 5)
        builder.execute(pa.table({"id": ids, "title": [rng.choice(WORDS) for _ in ids]}))

    def columns() -> None:
        name = f"c{rng.getrandbits(30)}"
        ds.add_columns({name: "id + 1"})
        if rng.random() < 0.5:
            ds.drop_columns([name])

    changes: list[Any] = [
        lambda: ds.insert(titles(rng.randint(1, 9), rng.randint(0, 50))),
        lambda: ds.update({"title": "'toe'"}, where=f"id % {rng.randint(2, 9)} = 0"),
        lambda: ds.update({"id": "id + 1"}, where=f"id % {rng.randint(2, 5)} = 0"),
        lambda: ds.delete(f"id % {rng.randint(6, 20)} = 1"),
        ds.optimize.compact_files,
        lambda: merge("rewrite_columns"),
        lambda: merge("rewrite_rows"),
        columns,
    ]
    for _ in range(5):
        for change in rng.sample(changes, 3):
            change()
        ds.refresh_embeddings(model=Letters(), batch_size=rng.choice([1, 4, 1000]))
        check(ds)
    assert ds.refresh_embeddings(model=Letters()) == 0


def test_refresh_by_vectors_embeds_rows_without_a_vector_and_keeps_stale_fingerprints(
    uri: str,
) -> None:
    ds = pennon.write_dataset(titles(8), uri)
    ds.embed("title", Letters())
    ds.update({"title_vector": "NULL"}, where="id = 0")
    ds.update({"title": "'toe'"}, where="id = 1")
    assert ds.refresh_embeddings(model=Letters()) == 1
    ds.update({"title": "'hoe'"}, where="id = 1")
    assert ds.refresh_embeddings(model=Letters(), check="vectors") == 1
    assert ds.refresh_embeddings(model=Letters(), check="both") == 1
    check(ds)
    assert ds.refresh_embeddings(model=Letters(), check="all") == 8


def test_embed_without_tracking_refreshes_rows_without_a_vector(uri: str) -> None:
    ds = pennon.write_dataset(titles(8), uri)
    ds.embed("title", Letters(), track_changes=False)
    assert ds.schema.names == ["id", "title", "title_vector"]
    ds.insert(titles(3))
    ds.update({"title": "'hoe'"}, where="id = 5")
    assert ds.refresh_embeddings(model=Letters()) == 3
    with pytest.raises(ArgumentError, match="not tracked"):
        ds.refresh_embeddings(model=Letters(), check="sources")


def test_model_without_a_vector_for_a_value_leaves_null_and_gets_it_once(uri: str) -> None:
    ds = pennon.write_dataset(titles(4), uri)
    model = EmbeddingModel(lambda texts: [None if t == "bee" else vector_of(t) for t in texts], "m")
    ds.embed("title", model)
    assert ds.to_table()["title_vector"].is_null().to_pylist() == [False, True, False, False]
    assert ds.refresh_embeddings(model=model) == 0


def test_normalized_vectors_have_length_one_after_embed_and_refresh(uri: str) -> None:
    ds = pennon.write_dataset(titles(4), uri)
    ds.embed("title", Letters(), "unit", normalize=True)
    ds.insert(titles(3))
    ds.refresh_embeddings("unit", model=Letters())
    rows = np.array(ds.to_table()["unit"].to_pylist())
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)


# --- columns ----------------------------------------------------------------------------------------


def test_refresh_finds_renamed_columns_by_their_ids(uri: str) -> None:
    ds = pennon.write_dataset(titles(6), uri)
    ds.embed("title", Letters())
    for old, new in (("title", "name"), ("title_vector", "v"), ("title_vector_hash", "h")):
        ds.alter_columns({"path": old, "name": new})
    ds.insert(pa.table({"id": [9], "name": ["toe"]}))
    assert ds.refresh_embeddings(model=Letters()) == 1
    check(ds, "name", "v")
    shown = ds.embeddings()["v"]
    assert (shown["source"], shown["fingerprint"]) == ("name", "h")


def test_refresh_of_a_renamed_source_beside_a_column_of_its_old_name_needs_the_source(
    uri: str,
) -> None:
    ds = pennon.write_dataset(titles(6), uri)
    ds.embed("title", Letters())
    ds.alter_columns({"path": "title", "name": "name"})
    ds.add_columns({"title": "'new'"})
    with pytest.raises(ArgumentError, match=r"is called 'name' now.*source=\.\.\."):
        ds.refresh_embeddings(model=Letters())
    assert ds.refresh_embeddings(model=Letters(), source="name") == 0
    assert ds.refresh_embeddings(model=Letters(), source="title") == 6
    check(ds)


def test_refresh_of_a_copy_in_another_order_of_columns_finds_them_by_name(uri: str) -> None:
    ds = pennon.write_dataset(titles(6), uri)
    ds.embed("title", Letters())
    names = ["title_vector_hash", "id", "title_vector", "title"]
    copy = pennon.write_dataset(ds.to_table(columns=names), uri + ".2")
    copy.insert(titles(2))
    assert copy.refresh_embeddings(model=Letters()) == 2
    check(copy)


def test_refresh_without_source_or_fingerprint_names_the_dropped_column(uri: str) -> None:
    ds = pennon.write_dataset(titles(6), uri)
    ds.embed("title", Letters())
    ds.add_columns({"other": "title"})
    ds.drop_columns(["title_vector_hash"])
    with pytest.raises(ArgumentError, match=r"'title_vector_hash', which tells .* is gone"):
        ds.refresh_embeddings(model=Letters())
    assert ds.refresh_embeddings(model=Letters(), check="vectors") == 0
    ds.drop_columns(["title"])
    with pytest.raises(ArgumentError, match="was made from 'title', which the table does not have"):
        ds.refresh_embeddings(model=Letters(), check="vectors")


@pytest.mark.parametrize("name", ["a.b", "back`tick", "s p a c e", "ünï"])
def test_embed_of_a_field_of_a_struct_and_of_odd_names(uri: str, name: str) -> None:
    rows = pa.table({"doc": [{name: "fox"}, {name: None}, None]})
    ds = pennon.write_dataset(rows, uri)
    path = "doc.`" + name.replace("`", "``") + "`"
    column = f"{name.replace('.', ' ')} vector"
    ds.embed(path, Letters(), column)
    ds.insert(pa.table({"doc": [{name: "eel"}]}))
    assert ds.refresh_embeddings(model=Letters()) == 1
    found = ds.to_table()[column].to_pylist()
    assert found == [vector_of("fox"), None, None, vector_of("eel")]


def test_embed_of_dictionary_texts(uri: str) -> None:
    rows = titles(20)
    rows = rows.set_column(1, "title", rows["title"].combine_chunks().dictionary_encode())
    ds = pennon.write_dataset(rows, uri)
    ds.embed("title", Letters())
    check(ds)


@pytest.mark.parametrize("kind", ["binary", "blob", "blob v2"])
def test_embed_of_bytes_and_of_blobs_gives_the_model_bytes(uri: str, kind: str) -> None:
    data = [b"foo", None, b"bee"]
    field = pa.field("image", pa.large_binary())
    if kind == "blob":
        field = field.with_metadata({"lance-encoding:blob": "true"})
    images = pennon.blob_array(data) if kind == "blob v2" else pa.array(data, pa.large_binary())
    field = pennon.blob_field("image") if kind == "blob v2" else field
    rows = pa.Table.from_arrays([images], schema=pa.schema([field]))
    version = "2.2" if kind == "blob v2" else "2.1"
    ds = pennon.write_dataset(rows, uri, data_storage_version=version)
    model = Letters()
    ds.embed("image", model)
    assert {type(each) for each in model.seen} == {bytes}
    ds.insert(rows)
    assert ds.refresh_embeddings(model=model) == 2
    vectors = ds.to_table(columns=["image_vector"])["image_vector"].to_pylist()
    assert vectors == [vector_of(b"foo"), None, vector_of(b"bee")] * 2
    found = ds.search(b"eee", k=1, model=model, columns=["_rowid"], with_row_id=True)
    assert found["_rowid"].to_pylist() == [2]


# --- empty tables, refusals -------------------------------------------------------------------------


def test_embed_of_an_empty_table_gets_the_dimension_from_the_model(uri: str) -> None:
    ds = pennon.write_dataset(titles(0), uri)
    ds.embed("title", Letters())
    assert ds.search("fox", model=Letters()).num_rows == 0
    ds.insert(titles(9))
    assert ds.refresh_embeddings(model=Letters()) == 8
    check(ds)


def test_embed_of_an_empty_table_of_bytes_needs_a_dimension(uri: str) -> None:
    ds = pennon.write_dataset(pa.table({"image": pa.array([], pa.binary())}), uri)
    with pytest.raises(ArgumentError, match="say how many numbers a vector has"):
        ds.embed("image", Letters())
    ds.embed("image", EmbeddingModel(Letters(), "letters", dimension=4))
    assert ds.schema.field("image_vector").type.list_size == 4


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("tilte", {}, NotFoundError, "did you mean 'title'"),
        ("id", {}, ArgumentError, "texts and binary values are embedded"),
        ("title", {"column": "id"}, InvalidSchemaError, "already exists"),
        ("title", {"metric": "near"}, ArgumentError, "Metric type 'near'"),
        ("title", {"metric": "hamming"}, ArgumentError, "does not support"),
        ("title", {"batch_size": 0}, ArgumentError, "batch_size must be at least 1"),
    ],
)
def test_embed_with_wrong_arguments_is_refused(
    uri: str, source: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    ds = pennon.write_dataset(titles(3), uri)
    with pytest.raises(error, match=message):
        ds.embed(source, Letters(), **options)
    assert ds.latest_version == 1


def test_embed_in_file_version_0_1_is_refused(uri: str) -> None:
    ds = pennon.write_dataset(titles(3), uri, data_storage_version="0.1")
    with pytest.raises(UnsupportedError, match=r"file version 0\.1"):
        ds.embed("title", Letters())


def test_refresh_by_another_model_is_refused(uri: str) -> None:
    ds = pennon.write_dataset(titles(3), uri)
    with pytest.raises(ArgumentError, match="no column of vectors whose model is remembered"):
        ds.refresh_embeddings(model=Letters())
    ds.embed("title", EmbeddingModel(Letters(), "strangers", "1"))
    with pytest.raises(
        ArgumentError, match=r"made by the model 'strangers 1'.* this is 'strangers 2'"
    ):
        ds.refresh_embeddings(model=EmbeddingModel(Letters(), "strangers", "2"))
    with pytest.raises(NotFoundError, match=r"register_embedding\('strangers', model\)"):
        ds.refresh_embeddings()
    with pytest.raises(ArgumentError, match="did you mean 'title_vector'"):
        ds.refresh_embeddings("title_vectr", model=Letters())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"format": 2}',
        '{"format": 1}',
        "9" * 70_000,
        "[" * 3000,
        pytest.param({"dimension": True}, id="dimension"),
        pytest.param({"metric": "near"}, id="metric"),
        pytest.param({"model": ""}, id="model"),
        pytest.param({"model": "m" * 300}, id="long model"),
        pytest.param({"source_id": "1"}, id="source"),
    ],
)
def test_note_that_cannot_be_read_disturbs_no_other_column(
    uri: str, text: str | dict[str, Any]
) -> None:
    ds = pennon.write_dataset(titles(3), uri)
    ds.embed("title", Letters())
    ds.embed("title", Letters(), "other")
    if isinstance(text, dict):
        note = json.loads(ds.schema.field("other").metadata[b"pennon.embedding"])
        text = json.dumps({**note, **text})
    ds.update_field_metadata({"other": {"pennon.embedding": text}})
    assert list(ds.embeddings()) == ["title_vector"]
    assert ds.search("fox", k=1, model=Letters()).num_rows == 1
    with pytest.raises(pennon.errors.FormatError, match="'other' is no note"):
        ds.refresh_embeddings("other", model=Letters())
