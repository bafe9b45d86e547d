"""Batches of tables: one global sequence for any ranks and workers, resumed anywhere."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, NotFoundError
from pennon.training import Batches, Share, batches
from tests.unit.forks import exit_codes

ROWS = 2003


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of three fragments."""
    path = str(tmp_path_factory.mktemp("training") / "table.lance")
    pennon.write_dataset(table(0, ROWS), path, max_rows_per_file=700)
    return path


def table(start: int, end: int) -> pa.Table:
    """Return rows with ids and words."""
    ids = range(start, end)
    return pa.table({"id": ids, "word": [f"w{each % 10}" for each in ids]})


def ids_of(found: Any) -> list[list[int]]:
    """Return the ids of each batch."""
    return [batch["id"].to_pylist() for batch in found]


def flat(found: Any) -> list[int]:
    """Return the ids of all batches."""
    return [each for batch in ids_of(found) for each in batch]


def global_ids(
    uri: str, world_size: int, workers: int, state: Any = None, **options: Any
) -> list[list[int]]:
    """Return the global batches that ranks and workers yield together, as a DataLoader of each rank does."""
    ranks = []
    for rank in range(world_size):
        by_worker: list[Iterator[Any]] = []
        for worker in range(max(workers, 1)):
            loader = Batches(uri, rank=rank, world_size=world_size, **options)
            if state is not None:
                loader.load_state_dict(state)
            loader.take_share(Share(rank, world_size, worker, max(workers, 1)))
            by_worker.append(iter(loader))
        ranks.append(list(in_turns(by_worker)))
    assert len({len(each) for each in ranks}) == 1
    return [[number for part in step for number in part] for step in zip(*ranks, strict=True)]


def in_turns(iterators: list[Iterator[Any]]) -> Iterator[list[int]]:
    """Yield the ids of batches of each iterator in turn."""
    while iterators:
        going = []
        for each in iterators:
            batch = next(each, None)
            if batch is not None:
                yield batch["id"].to_pylist()
                going.append(each)
        iterators = going


@pytest.mark.parametrize("drop_last", [True, False])
def test_global_batches_are_equal_for_all_world_sizes_and_workers(
    uri: str, *, drop_last: bool
) -> None:
    options: dict[str, Any] = {"batch_size": 64, "seed": 3, "drop_last": drop_last, "prefetch": 0}
    expected = ids_of(batches(uri, **options))
    assert sum(map(len, expected)) == (ROWS // 64 * 64 if drop_last else ROWS)
    for world_size in (1, 2, 4, 8):
        for workers in (0, 2, 4):
            assert global_ids(uri, world_size, workers, **options) == expected


def test_resume_at_random_steps_into_other_worlds_repeats_and_skips_no_row(uri: str) -> None:
    rng = random.Random(1)
    options: dict[str, Any] = {"batch_size": 24, "seed": 8, "prefetch": 0}
    for _ in range(100):
        loader = Batches(uri, **options)
        loader.set_epoch(rng.randrange(5))
        whole = ids_of(loader)
        step = rng.randrange(len(whole) + 1)
        state = json.loads(json.dumps(loader.state_dict(batches=step)))
        world_size, workers = rng.choice([1, 2, 4, 8]), rng.choice([0, 2, 4])
        assert global_ids(uri, world_size, workers, state, **options) == whole[step:]


def test_state_counts_the_batches_returned_not_those_read_ahead(uri: str) -> None:
    loader = batches(uri, batch_size=50, prefetch=4)
    with iter(loader) as iterator:
        first = [next(iterator) for _ in range(3)]
        state = loader.state_dict()
        rest = flat(iterator)
    resumed = batches(uri, batch_size=50)
    resumed.load_state_dict(state)
    assert state["position"] == 150
    assert flat(resumed) == rest
    assert len({*flat(first), *rest}) == 2000


def test_resume_with_another_batch_size_goes_on_at_the_row(uri: str) -> None:
    loader = batches(uri, batch_size=50, drop_last=False)
    whole = flat(loader)
    resumed = batches(uri, batch_size=7, drop_last=False)
    resumed.load_state_dict(loader.state_dict(batches=3))
    assert flat(resumed) == whole[150:]


def test_set_epoch_keeps_the_place_of_the_epoch_that_was_loaded(uri: str) -> None:
    loader = batches(uri, batch_size=500)
    loader.set_epoch(2)
    state = loader.state_dict(batches=2)
    resumed = batches(uri, batch_size=500)
    resumed.load_state_dict(state)
    resumed.set_epoch(2)
    assert len(list(resumed)) == 2
    resumed.set_epoch(3)
    assert len(list(resumed)) == 4


def test_ranks_have_equal_numbers_of_batches_of_fewer_rows_than_ranks(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(table(0, 5), uri)
    parts = [
        batches(uri, batch_size=8, drop_last=False, rank=rank, world_size=8) for rank in range(8)
    ]
    assert [len(list(part)) for part in parts] == [1] * 8
    assert sorted(each for part in parts for each in flat(part)) == list(range(5))
    assert not list(batches(uri, batch_size=8))


def test_empty_table_has_no_batches(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(table(0, 0), uri)
    for drop_last in (True, False):
        loader = batches(uri, drop_last=drop_last)
        assert (loader.rows, len(loader), list(loader)) == (0, 0, [])
    assert batches(uri).schema.names == ["id", "word"]


def test_deleted_rows_are_not_in_batches(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(table(0, 300), uri, max_rows_per_file=100)
    ds.delete("id % 3 = 0")
    assert sorted(flat(batches(uri, batch_size=20))) == [n for n in range(300) if n % 3]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("indexed", [False, True])
def test_filter_keeps_the_rows_that_satisfy_it(
    tmp_path: Path, *, stable: bool, indexed: bool
) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(
        table(0, 900), uri, max_rows_per_file=200, enable_stable_row_ids=stable
    )
    if indexed:
        ds.create_scalar_index("word", "BITMAP")
    ds.delete("id < 100")
    ds.optimize.compact_files()
    loader = batches(uri, filter="word = 'w3'", columns=["id"], batch_size=8)
    expected = [n for n in range(100, 900) if n % 10 == 3]
    assert sorted(flat(loader)) == expected
    assert loader.schema.names == ["id"]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("filter", [None, "id % 3 = 0"])
@pytest.mark.parametrize("block_rows", [1, 64])
def test_batches_of_types_and_file_versions_equal_take(
    tmp_path: Path, version: str, filter: str | None, block_rows: int
) -> None:
    """Long and short texts, vectors, lists, structs, bits; with and without NULLs; some rows deleted."""
    path, rows = str(tmp_path / "t.lance"), 900
    vectors = np.random.default_rng(1).random((rows, 96), np.float32)
    holes = [None if number % 7 == 0 else number for number in range(rows)]
    data = pa.table(
        {
            "id": range(rows),
            "long": [f"{number} and some words " * 40 for number in range(rows)],
            "hollow": [None if each is None else f"{each} words " * 40 for each in holes],
            "short": [f"w{number % 10}" for number in range(rows)],
            "vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), 96),
            "number": pa.array(holes, pa.int32()),
            "bit": [number % 3 == 0 for number in range(rows)],
            "list": [list(range(number % 4)) for number in range(rows)],
            "struct": [{"x": number, "y": str(number)} for number in range(rows)],
        }
    )
    pennon.write_dataset(data, path, max_rows_per_file=250, data_storage_version=version)
    pennon.dataset(path).delete("id % 11 = 5")
    dataset = pennon.dataset(path)
    loader = Batches(path, batch_size=32, seed=3, block_rows=block_rows, filter=filter)
    live = dataset.to_table(columns=["id"], filter=filter)["id"].to_pylist()
    batches = list(loader)
    assert len(batches) == len(live) // 32
    assert len(set(flat(batches))) == 32 * len(batches)
    assert set(flat(batches)) <= set(live)
    for batch in batches:
        batch.validate(full=True)
        assert batch.to_pylist() == data.take(batch["id"]).to_pylist()
        assert batch.get_total_buffer_size() < 3 * batch.nbytes + 4096


def test_version_stays_pinned_while_others_append_delete_and_compact(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(table(0, 100), uri, max_rows_per_file=30)
    loader = batches(uri, batch_size=10)
    whole, state = flat(loader), loader.state_dict(batches=4)
    pennon.write_dataset(table(100, 200), uri, mode="append")
    ds = pennon.dataset(uri)
    ds.delete("id < 50")
    ds.optimize.compact_files()
    assert flat(loader) == whole
    resumed = batches(uri, batch_size=10)
    assert resumed.rows == 150
    resumed.load_state_dict(state)
    assert (resumed.versions, flat(resumed)) == ((1,), whole[40:])


def test_state_of_a_version_that_was_cleaned_up_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(table(0, 100), uri)
    state = batches(uri).state_dict()
    ds = pennon.write_dataset(table(100, 200), uri, mode="overwrite")
    ds.cleanup_old_versions(older_than=timedelta(0))
    with pytest.raises(NotFoundError, match="version"):
        batches(uri).load_state_dict(state)


def test_branch_is_read_and_resumed_at_its_version(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    ds = pennon.write_dataset(table(0, 100), uri)
    branch = ds.create_branch("b")
    pennon.write_dataset(table(100, 150), branch, mode="append")
    branch.checkout_latest()
    loader = batches(branch, batch_size=10)
    whole = flat(loader)
    assert sorted(whole) == list(range(150))
    resumed = batches(branch, batch_size=10)
    resumed.load_state_dict(loader.state_dict(batches=7))
    assert flat(resumed) == whole[70:]


def test_blobs_are_read_as_bytes(tmp_path: Path) -> None:
    values = [bytes([n]) * (n * 50 + 1) for n in range(40)]
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        ]
    )
    rows = pa.table({"id": range(40), "blob": values}, schema=schema)
    pennon.write_dataset(rows, str(tmp_path / "v1"))
    newer = pa.table({"id": range(40), "blob": pennon.blob_array(values)})
    pennon.write_dataset(newer, str(tmp_path / "v2"), data_storage_version="2.2")
    for name in ("v1", "v2"):
        for batch in batches(str(tmp_path / name), batch_size=10):
            expected = [values[each] for each in batch["id"].to_pylist()]
            assert batch["blob"].to_pylist() == expected


def test_mixed_tables_yield_rows_by_their_weights(tmp_path: Path) -> None:
    for name, start, end in (("a", 0, 700), ("b", 1000, 1400)):
        pennon.write_dataset(table(start, end), str(tmp_path / name))
    both = [str(tmp_path / "a"), str(tmp_path / "b")]
    loader = batches(both, weights=[0.7, 0.3], batch_size=100)
    whole = flat(loader)
    assert len(loader) == 10
    assert [sum(each >= 1000 for each in step) for step in ids_of(loader)] == [30] * 10
    assert len(set(whole)) == 1000
    resumed = batches(both, batch_size=100)
    resumed.load_state_dict(loader.state_dict(batches=3))
    assert flat(resumed) == whole[300:]


def test_expressions_are_columns_of_batches(uri: str) -> None:
    loader = batches(uri, columns={"twice": "id * 2"}, shuffle=False, batch_size=3)
    assert next(iter(loader)).to_pydict() == {"twice": [0, 2, 4]}


def test_batches_pickle_with_their_version_and_place(uri: str) -> None:
    loader = batches(uri, filter="id > 100", batch_size=100)
    loader.set_epoch(3)
    assert flat(pickle.loads(pickle.dumps(loader))) == flat(loader)


def test_iterator_goes_on_in_a_forked_child(uri: str) -> None:
    loader = batches(uri, batch_size=100, prefetch=2)
    expected = flat(loader)
    iterator = iter(loader)
    begun = flat([next(iterator)])
    assert exit_codes(lambda: begun + flat(iterator) == expected, 2) == [0, 0]
    assert begun + flat(iterator) == expected


def test_large_blocks_and_windows_read_each_row_once(uri: str) -> None:
    loader = batches(uri, batch_size=100, block_rows=16, window_blocks=4, drop_last=False)
    assert sorted(flat(loader)) == list(range(ROWS))


@pytest.mark.parametrize("columns", [["id"], ["id", "word"]])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_blocks_without_a_window_keep_neighbours_together(
    uri: str, columns: list[str], prefetch: int
) -> None:
    loader = Batches(
        uri,
        columns=columns,
        batch_size=100,
        block_rows=100,
        window_blocks=0,
        drop_last=False,
        prefetch=prefetch,
    )
    found = list(loader)
    assert sorted(flat(found)) == list(range(ROWS))
    borders = [row for before, row in pairwise(flat(found)) if row != before + 1]
    assert 5 < len(borders) <= ROWS // 100
    assert all(row % 100 == 0 for row in borders)
    for batch in found:
        batch.validate(full=True)
        assert [column.offset for column in batch.columns] == [0] * len(columns)
        assert "word" not in columns or batch["word"].to_pylist() == [
            f"w{row % 10}" for row in batch["id"].to_pylist()
        ]


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("place", ["local", "memory"])
@pytest.mark.parametrize("tables", [1, 2])
def test_values_written_over_in_a_batch_change_no_other_batch(
    tmp_path: Path, version: str, place: str, tables: int
) -> None:
    """A tensor shares the memory of its batch where that may be written to."""
    uri = f"memory://{tmp_path.name}" if place == "memory" else str(tmp_path / "t.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(16_000, dtype=np.float32)), 16)
    columns = {
        "id": np.arange(1000),
        "small": np.arange(1000, dtype=np.uint8),
        "same": np.full(1000, 7),
        "vector": vectors,
    }
    pennon.write_dataset(pa.table(columns), uri, data_storage_version=version)
    order = Batches([uri] * tables, batch_size=64, block_rows=32, window_blocks=0)
    loader = Batches([uri] * tables, batch_size=64, block_rows=32, window_blocks=0)
    expected = [batch.to_pylist() for batch in order]
    for _ in range(2):
        loader.set_epoch(0)
        for batch, rows in zip(loader, expected, strict=True):
            assert batch.to_pylist() == rows
            for column in batch.columns:
                values = column.buffers()[-1]
                if values.is_mutable:
                    np.frombuffer(values, np.uint8)[:] = 255


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number from 1"),
        ({"batch_size": 2.0}, "batch_size must be a whole number from 1"),
        ({"rank": 2, "world_size": 2}, "rank must be below world_size"),
        ({"batch_size": 3, "rank": 0, "world_size": 4}, "counts the rows of all ranks"),
        ({"prefetch": -1}, "prefetch must be"),
        ({"seed": 1.5}, "seed"),
        ({"seed": "1"}, "seed"),
        ({"weights": [1, 2]}, "2 weights are given for 1 tables"),
        ({"columns": ["absent"]}, "absent"),
        ({"filter": "absent > 1"}, "absent"),
        ({"block_rows": 0}, "block_rows must be"),
        ({"window_blocks": -1}, "window_blocks must be"),
    ],
)
def test_argument_that_does_not_fit_is_refused(
    uri: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        batches(uri, **options)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"versions": [True]},
        {"versions": [1, 1]},
        {"rows": [5]},
        {"parts": [0]},
        {"position": -1},
        {"epoch": "0"},
        {"seed": None},
        {"shuffle": 1},
        {"worker": 0, "workers": 2},
        {"block_rows": 0},
        {"block_rows": 1 << 70},
    ],
)
def test_state_that_does_not_fit_is_refused(uri: str, change: dict[str, Any]) -> None:
    loader = batches(uri)
    state = loader.state_dict() | change
    before = flat(loader)
    with pytest.raises(ArgumentError):
        loader.load_state_dict(state)
    assert flat(loader) == before
    with pytest.raises(ArgumentError, match="a loader's state is a dict"):
        loader.load_state_dict([1])  # type: ignore[arg-type]


def test_random_numbers_of_the_process_do_not_change_the_order(uri: str) -> None:
    first = flat(batches(uri, seed=1))
    np.random.seed(5)  # noqa: NPY002 - the state that must not matter
    random.seed(5)
    assert flat(batches(uri, seed=1)) == first
