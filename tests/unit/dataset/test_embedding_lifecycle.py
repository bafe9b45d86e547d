"""Embedded tables beside other writers, crashes, indices, compaction and clean-up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.embeddings import EmbeddingModel
from tests.unit.dataset.letters import Letters, check, titles


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


# --- conflicts, crashes, progress -------------------------------------------------------------------


def test_embed_while_others_append_embeds_only_the_new_fragments_again(uri: str) -> None:
    ds = pennon.write_dataset(titles(16), uri, max_rows_per_file=8)
    model, others = Letters(), [titles(8, 100)]

    def slow(values: list[str]) -> Any:
        if others:
            pennon.write_dataset(others.pop(), uri, mode="append")
        return model(values)

    ds.embed("title", EmbeddingModel(slow, "slow", dimension=4))
    check(ds)
    assert ds.count_rows() == 24
    assert len(model.seen) == 21  # 7 of 8 titles are there in each of three fragments


def test_refresh_while_others_update_embeds_their_rows_too(uri: str) -> None:
    ds = pennon.write_dataset(titles(16), uri, max_rows_per_file=8)
    ds.embed("title", Letters())
    ds.insert(titles(8, 100))
    others = [1]

    def slow(values: list[str]) -> Any:
        if others:
            others.pop()
            pennon.dataset(uri).update({"title": "'toe'"}, where="id IN (1, 101)")
        return Letters()(values)

    ds.refresh_embeddings(model=slow)
    ds.refresh_embeddings(model=slow)
    check(ds)


@pytest.mark.parametrize("refresh", [False, True])
def test_embed_goes_on_from_a_checkpoint_after_a_crash(
    uri: str, tmp_path: Path, refresh: bool
) -> None:
    ds = pennon.write_dataset(titles(8) if refresh else titles(32), uri, max_rows_per_file=16)
    if refresh:
        ds.embed("title", EmbeddingModel(Letters(), "m"))
        ds.insert(titles(16), max_rows_per_file=8)
    model, file = Letters(), tmp_path / "state.db"

    def dies(values: list[str]) -> Any:
        if len(model.sizes) == 3:
            raise MemoryError
        return model(values)

    def run(function: Any) -> None:
        options: dict[str, Any] = {"batch_size": 4, "checkpoint_file": file}
        given = EmbeddingModel(function, "m", dimension=4)
        if refresh:
            ds.refresh_embeddings(model=given, **options)
        else:
            ds.embed("title", given, **options)

    with pytest.raises(MemoryError):
        run(dies)
    run(model)
    check(ds)
    assert not file.exists()
    assert len(model.seen) == (14 if refresh else 28)


def test_progress_of_embed_and_refresh_counts_all_rows_in_order(uri: str) -> None:
    told: list[tuple[int, int]] = []
    ds = pennon.write_dataset(titles(20), uri, max_rows_per_file=8)
    ds.embed("title", Letters(), batch_size=5, progress=lambda *rows: told.append(rows))
    assert told == [(5, 20), (8, 20), (13, 20), (16, 20), (20, 20)]
    told.clear()
    ds.insert(titles(4))
    ds.refresh_embeddings(model=Letters(), progress=lambda *rows: told.append(rows))
    assert told == [(8, 24), (16, 24), (20, 24), (24, 24)]


# --- indices ----------------------------------------------------------------------------------------


def many(count: int, first: int = 0) -> pa.Table:
    """Return rows whose titles all differ."""
    rng = np.random.default_rng(first)
    titles = ["".join(rng.choice(list("oeab"), 12)) for _ in range(count)]
    return pa.table({"id": range(first, first + count), "title": titles})


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("deferred", [False, True])
def test_index_on_vectors_before_and_after_a_refresh_finds_the_nearest_rows(
    uri: str, kind: Any, deferred: bool
) -> None:
    ds = pennon.write_dataset(many(400), uri, max_rows_per_file=100)
    model = EmbeddingModel(Letters(), "letters")
    ds.embed("title", model, metric="l2")
    ds.create_index("title_vector", kind, num_partitions=2, metric="l2")
    ds.insert(many(50, 1000))
    ds.update({"title": "'oooooooooooo'"}, where="id IN (7, 1007)")
    ds.delete("id % 10 = 9")
    ds.optimize.compact_files(defer_index_remap=deferred)
    ds.refresh_embeddings(model=model)
    check(ds)
    for _ in range(2):
        found = ds.search("oooooooooooo", k=2, model=model, nprobes=2)
        assert sorted(found["id"].to_pylist()) == [7, 1007]
        assert found["_distance"].to_pylist() == [0, 0]
        assert "index 'title_vector_idx'" in ds.explain_search("o", model=model)
        ds.optimize.optimize_indices()


@pytest.mark.parametrize("stable", [False, True])
def test_refresh_of_few_rows_under_an_index_keeps_the_index_on_all_others(
    uri: str, stable: bool
) -> None:
    ds = pennon.write_dataset(many(300), uri, enable_stable_row_ids=stable)
    model = EmbeddingModel(Letters(), "letters")
    ds.embed("title", model, metric="l2")
    ds.insert(many(10, 1000))
    ds.create_index("title_vector", "IVF_FLAT", num_partitions=2, metric="l2")
    ds.update({"title": "'oooooooooooo'"}, where="id = 7")
    ds.optimize.optimize_indices()
    ds.optimize.compact_files()
    (whole,) = ds.get_fragments()
    assert ds.refresh_embeddings(model=model) == 11
    check(ds)
    assert [each.count_rows() for each in ds.get_fragments()] == [299, 11]
    covered = {n for index in ds.describe_indices() for s in index.segments for n in s.fragment_ids}
    assert whole.fragment_id in covered
    assert ds.search("oooooooooooo", k=1, model=model)["id"].to_pylist() == [7]
    assert ds.count_rows() == 310
    assert ds.refresh_embeddings(model=model) == 0


def test_compaction_before_the_first_refresh_keeps_missing_vectors_findable(uri: str) -> None:
    ds = pennon.write_dataset(titles(16), uri, max_rows_per_file=4)
    ds.embed("title", Letters())
    ds.insert(titles(16, 100), max_rows_per_file=4)
    ds.delete("id = 3 OR id = 103")
    ds.optimize.compact_files()
    assert len(ds.get_fragments()) == 1
    assert ds.refresh_embeddings(model=Letters()) == 13
    check(ds)


def test_old_versions_of_an_embedded_table_stay_as_they_were_after_clean_up(uri: str) -> None:
    ds = pennon.write_dataset(titles(16), uri, max_rows_per_file=4)
    ds.embed("title", Letters())
    ds.tags.create("embedded", ds.version)
    ds.update({"title": "'toe'"}, where="id < 9")
    ds.refresh_embeddings(model=Letters())
    ds.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    check(pennon.dataset(uri))
    check(pennon.dataset(uri, version="embedded"))
