"""LanceBatches and LanceRows in torch's DataLoader: workers of all kinds, states, tensors.

Run by `test_training` in the environment that has torch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.utils.data import DataLoader

import pennon
import pennon.torch

ROWS = 1003


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of numbers, vectors and texts in five fragments."""
    path = str(tmp_path_factory.mktemp("train") / "table.lance")
    vectors = np.arange(ROWS * 4, dtype=np.float32)
    rows = pa.table(
        {
            "id": range(ROWS),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 4),
            "word": [f"w{each}" for each in range(ROWS)],
            "is_even": [each % 2 == 0 for each in range(ROWS)],
        }
    )
    pennon.write_dataset(rows, path, max_rows_per_file=250)
    return path


def ids(loader: Any) -> list[list[int]]:
    """Return the ids of each batch."""
    return [batch["id"].tolist() for batch in loader]


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_workers_of_each_kind_yield_the_order_without_workers(uri: str, context: str) -> None:
    data = pennon.torch.LanceBatches(uri, batch_size=64, seed=3)
    expected = ids(data)
    loader = DataLoader(data, batch_size=None, num_workers=2, multiprocessing_context=context)
    assert len(expected) == len(loader) == 15
    assert ids(loader) == expected


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("window_blocks", [0, 1])
def test_batches_collated_as_they_are_equal_those_of_the_dataset(
    uri: str, workers: int, window_blocks: int
) -> None:
    data = pennon.torch.LanceBatches(
        uri, batch_size=64, block_rows=64, window_blocks=window_blocks, drop_last=False
    )
    loader = DataLoader(data, batch_size=None, num_workers=workers, collate_fn=pennon.torch.collate)
    rows = 0
    for batch, expected in zip(loader, data, strict=True):
        assert list(batch) == list(expected)
        assert batch["word"] == expected["word"] == [f"w{each}" for each in batch["id"].tolist()]
        assert torch.equal(batch["vector"], expected["vector"])
        assert batch["vector"][:, 0].tolist() == [4.0 * each for each in batch["id"].tolist()]
        batch["vector"][:] = 0  # is the batch's own
        rows += len(batch["id"])
    assert rows == ROWS


def test_persistent_workers_see_the_epoch(uri: str) -> None:
    data = pennon.torch.LanceBatches(uri, batch_size=100)
    alone = pennon.torch.LanceBatches(uri, batch_size=100)
    loader = DataLoader(data, batch_size=None, num_workers=2, persistent_workers=True)
    for epoch in (0, 1, 5, 1):
        data.set_epoch(epoch)
        alone.set_epoch(epoch)
        assert ids(loader) == ids(alone)


def test_state_of_the_main_process_resumes_with_other_ranks_and_workers(uri: str) -> None:
    data = pennon.torch.LanceBatches(uri, batch_size=40, rank=0, world_size=1)
    whole = ids(data)
    state = json.loads(json.dumps(data.state_dict(batches=7)))
    parts = []
    for rank in range(2):
        resumed = pennon.torch.LanceBatches(uri, batch_size=40, rank=rank, world_size=2)
        resumed.load_state_dict(state)
        parts.append(ids(DataLoader(resumed, batch_size=None, num_workers=2)))
    assert [a + b for a, b in zip(*parts, strict=True)] == whole[7:]


@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader_resumes_at_its_step(uri: str, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def loader() -> Any:
        data = pennon.torch.LanceBatches(uri, batch_size=50)
        return stateful(data, batch_size=None, num_workers=workers)

    whole = ids(loader())
    for step in (1, 4, 7):
        begun = loader()
        iterator = iter(begun)
        first = [next(iterator)["id"].tolist() for _ in range(step)]
        state = begun.state_dict()
        resumed = loader()
        resumed.load_state_dict(state)
        assert first + ids(resumed) == whole


def test_tensors_have_shapes_types_and_memory_of_their_own(uri: str) -> None:
    for shuffle in (True, False):
        data = pennon.torch.LanceBatches(uri, batch_size=10, shuffle=shuffle)
        batch = next(iter(data))
        number = batch["id"].tolist()[3]
        assert batch["vector"].shape == (10, 4)
        assert batch["vector"][3].tolist() == [number * 4.0 + at for at in range(4)]
        assert batch["word"][3] == f"w{number}"
        assert batch["is_even"].dtype == torch.bool
        batch["id"] += 1
        batch["vector"] *= 0
        assert next(iter(data))["id"].tolist()[3] == number


def test_nulls_become_nan_or_are_refused() -> None:
    batch = pa.record_batch({"x": pa.array([1.0, None])})
    assert torch.isnan(pennon.torch.to_tensors(batch)["x"]).tolist() == [False, True]
    batch = pa.record_batch({"n": pa.array([1, None])})
    with pytest.raises(ValueError, match="'n' holds NULL"):
        pennon.torch.to_tensors(batch)


def test_columns_of_many_types_become_tensors_and_lists() -> None:
    images = pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    )
    batch = pa.record_batch(
        {
            "image": images,
            "half": pa.array(np.array([1, 2], np.float16)),
            "when": pa.array([0, 5], pa.timestamp("us")),
            "lists": [[1, 2], [3]],
            "struct": [{"a": 1}, {"a": 2}],
            "bytes": [b"x", None],
            "coded": pa.array(["a", "a"]).dictionary_encode(),
        }
    ).slice(1)
    found = pennon.torch.to_tensors(batch)
    assert found["image"].tolist() == np.arange(12, 24).reshape(1, 3, 4).tolist()
    assert found["half"].tolist() == [2.0]
    assert found["when"].tolist() == [5]
    assert [each.tolist() for each in found["lists"]] == [[3]]
    assert found["struct"]["a"].tolist() == [2]
    assert (found["bytes"], found["coded"]) == ([None], ["a"])


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_by_number_use_torchs_samplers(uri: str, workers: int) -> None:
    rows = pennon.torch.LanceRows(uri, filter="id >= 500", columns=["id", "word"])
    loader = DataLoader(
        rows, batch_size=50, shuffle=True, num_workers=workers, collate_fn=pennon.torch.collate
    )
    assert sorted(each for batch in ids(loader) for each in batch) == list(range(500, ROWS))
    plain = DataLoader(rows, batch_size=2)
    assert next(iter(plain))["id"].tolist() == [500, 501]
    assert rows[-1]["word"] == f"w{ROWS - 1}"
    with pytest.raises(IndexError):
        rows[ROWS]


KILLED = """
import sys, time
import pennon.torch
from torch.utils.data import DataLoader
data = pennon.torch.LanceBatches(sys.argv[1], batch_size=10)
for batch in DataLoader(data, batch_size=None, num_workers=2):
    print("begun", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Give a folder for sockets: names of these have at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="pennon-") as made:
        yield Path(made)


def test_kill_leaves_no_files_behind(uri: str, short_folder: Path) -> None:
    before = sorted(Path(uri).rglob("*"))
    environment = os.environ | {"TMPDIR": str(short_folder)}
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"begun\n"
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert sorted(Path(uri).rglob("*")) == before
    left = {each.name.partition("-")[0] for each in short_folder.rglob("*")}
    assert left <= {"pymp", "listener"}  # sockets through which torch's own workers send tensors
