"""Batches that reach the training process in the memory of a worker: right while a tensor lives, and given back after.

Run by `test_training` in the environment that has torch.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import pennon
import pennon.torch

ROWS, SIZE = 640, 32
DIMENSION = 1024


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of large values of many types; a batch of 32 rows is some 500 KB."""
    path = str(tmp_path_factory.mktemp("memory") / "table.lance")
    random = np.random.default_rng(5)
    vectors = pa.array(random.random(ROWS * DIMENSION, np.float32))
    flags = pa.array(random.integers(0, 2, ROWS * DIMENSION, np.uint8).astype(bool))
    images = [
        None if each % 7 == 3 else bytes([each % 251]) * (9000 + each) for each in range(ROWS)
    ]
    rows = pa.table(
        {
            "id": range(ROWS),
            "vector": pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
            "flags": pa.FixedSizeListArray.from_arrays(flags, DIMENSION),
            "image": pa.array(images, pa.binary()),
            "text": [f"text {each} " * (each % 90) for each in range(ROWS)],
            "lists": [[float(each)] * (each % 1500) for each in range(ROWS)],
            "pair": [{"id": each, "bytes": bytes([each % 251]) * 5000} for each in range(ROWS)],
        }
    )
    pennon.write_dataset(rows, path)
    return path


def same(left: Any, right: Any) -> bool:
    """Return whether two batches, or parts of them, are of one type and equal."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def batches_of(uri: str, **options: Any) -> Any:
    return pennon.torch.LanceBatches(uri, batch_size=SIZE, seed=1, **options)


def loader_of(uri: str, workers: int = 2, **options: Any) -> Any:
    return DataLoader(batches_of(uri), batch_size=None, num_workers=workers, **options)


def mapped(process: int | None = None) -> int:
    """Return how many batches of workers a process has mapped; this one, once nothing is left that nobody needs."""
    gc.collect()
    return Path(f"/proc/{process or 'self'}/maps").read_text().count("pennon-batch")


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_batches_that_are_all_kept_are_those_without_workers(uri: str, context: str) -> None:
    expected = list(batches_of(uri))
    kept = list(loader_of(uri, multiprocessing_context=context))
    assert len(kept) == ROWS // SIZE == 20
    assert same(kept, expected)
    assert mapped() > 0
    del kept
    assert mapped() == 0


def test_batches_that_are_dropped_are_those_without_workers(uri: str) -> None:
    loader = loader_of(uri, persistent_workers=True)
    for _ in range(3):
        for batch, expected in zip(loader, batches_of(uri), strict=True):
            assert same(batch, expected)


def test_a_tensor_keeps_its_values_when_its_batch_is_dropped_and_may_be_written_to(
    uri: str,
) -> None:
    expected = [batch["vector"] for batch in batches_of(uri)]
    kept = []
    for number, batch in enumerate(loader_of(uri, workers=1)):
        kept.append(batch["vector"][5])
        batch["vector"][6] = -1.0  # no other batch has it
        assert torch.equal(batch["vector"][:6], expected[number][:6])
        assert torch.equal(batch["vector"][7:], expected[number][7:])
    assert all(torch.equal(row, batch[5]) for row, batch in zip(kept, expected, strict=True))


def test_a_process_that_is_forked_keeps_the_batches_of_its_parent(uri: str) -> None:
    expected = list(batches_of(uri))
    loader = iter(loader_of(uri, workers=1))
    batch = next(loader)
    context = multiprocessing.get_context("fork")
    asked, answers = context.Event(), context.SimpleQueue()

    def look(held: Any) -> None:
        asked.wait()
        answers.put(same(held, expected[0]))

    child = context.Process(target=look, args=(batch,))
    child.start()
    del batch
    for number, later in enumerate(loader, start=1):  # they would be put where the first one was
        assert same(later, expected[number])
    asked.set()
    assert answers.get()
    child.join()


def pickled(batch: Any) -> bytes:
    return pickle.dumps(batch)


def test_a_pickle_that_a_worker_makes_of_a_batch_holds_the_batch(uri: str) -> None:
    loader = loader_of(uri, collate_fn=pickled)
    for data, expected in zip(loader, batches_of(uri), strict=True):
        batch = pickle.loads(data)
        assert type(batch) is dict
        assert same(batch, expected)


def doubled(batch: Any) -> Any:
    assert isinstance(batch, dict)
    return batch["vector"] * 2, batch["text"]


def test_collate_fn_of_a_loader_gets_a_dict(uri: str) -> None:
    for found, expected in zip(loader_of(uri, collate_fn=doubled), batches_of(uri), strict=True):
        assert same(tuple(found), (expected["vector"] * 2, expected["text"]))
    for batch, expected in zip(loader_of(uri, collate_fn=dict), batches_of(uri), strict=True):
        assert same(batch, expected)
    assert mapped() == 0


def test_batches_of_rows_by_number_travel_as_those_in_order_do(uri: str) -> None:
    rows = pennon.torch.LanceRows(uri)
    options: dict[str, Any] = {"batch_size": SIZE, "collate_fn": pennon.torch.collate}
    pairs = zip(
        DataLoader(rows, num_workers=2, **options), DataLoader(rows, **options), strict=True
    )
    assert all(same(batch, expected) for batch, expected in pairs)


def test_tensors_of_one_memory_and_odd_kinds_arrive_equal(uri: str) -> None:
    data = batches_of(uri, columns=["vector"], collate=_odd_kinds)
    alone = DataLoader(data, batch_size=None)  # which makes lists of tuples, too
    for batch, expected in zip(
        DataLoader(data, batch_size=None, num_workers=1), alone, strict=True
    ):
        assert same(batch, expected)


def test_batches_with_tensors_that_only_torch_can_send_arrive(uri: str) -> None:
    data = batches_of(uri, columns=["vector"], collate=_for_torch_alone)
    for batch, expected in zip(DataLoader(data, batch_size=None, num_workers=1), data, strict=True):
        assert same(batch["views"], expected["views"])
        assert torch.equal(batch["sparse"].to_dense(), expected["sparse"].to_dense())
        assert batch["parameter"].requires_grad
        assert torch.equal(batch["parameter"], expected["parameter"])


def _for_torch_alone(batch: dict[str, Any]) -> dict[str, Any]:
    vector = batch["vector"]
    return {
        "views": [vector[2:], vector[:3], vector[4][:9]],
        "sparse": torch.eye(100).to_sparse(),
        "parameter": torch.nn.Parameter(vector.clone()),
    }


def _odd_kinds(batch: dict[str, Any]) -> dict[Any, Any]:
    vector = batch["vector"]
    return {
        "column": vector[:, ::3],
        "transposed": vector.T,
        "half": vector.to(torch.bfloat16),
        "complex": torch.complex(vector, -vector).conj(),
        "empty": vector[:0],
        "scalar": torch.tensor(3),
        "views": list(torch.tensor_split(vector.reshape(-1), (5000, 5007, 8000, 8500))),
        "nested": {"tuple": (vector, [vector, b"x" * 9000])},
        "ordered": OrderedDict(vector=vector),
        3: "no text for a key",
    }


def test_batches_survive_threads_that_take_and_drop_them(uri: str) -> None:
    expected = {int(batch["id"][0]): batch for batch in batches_of(uri)}
    wrong: list[int] = []

    def look(batch: Any) -> None:
        if not same(batch, expected[int(batch["id"][0])]):
            wrong.append(int(batch["id"][0]))

    for _ in range(3):
        threads = [
            threading.Thread(target=look, args=(batch,)) for batch in loader_of(uri, workers=2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_worker_keeps_few_parts_of_memory(uri: str) -> None:
    before = {each.pid for each in multiprocessing.active_children()}
    loader = loader_of(uri, workers=1, persistent_workers=True)
    for _ in range(3):
        for _ in loader:
            pass
    (worker,) = (each for each in multiprocessing.active_children() if each.pid not in before)
    assert 1 <= mapped(worker.pid) <= 4
