"""A training loader that is measured: ``loader_side.py pennon``, ``pennon-batches``, ``pylance``, ``pylance-rows``, ``hf`` or ``mosaic``.

Each is a process of its own, in an interpreter that has its packages, and reads batches as its documentation says.
Texts arrive as ``str``, images as ``bytes``, vectors as one tensor of a batch, always shuffled by a seed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
import types
import warnings
from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final

from tasks import Side, Task, Works, answer_tasks

UNCOUNTED: Final = 8
"""Batches before the clock starts: workers fill their queues during them."""
BUFFER: Final = 10_000
"""Rows among which Hugging Face's streams are shuffled, as its pages propose for texts."""
BUFFER_BYTES: Final = 256 << 20


class LoaderSide(Side):
    """Opens a loader of a task, and reads it: ``folder``, ``workers``, ``batch_size``, ``kind``, ``row_bytes``."""

    def __init__(self) -> None:
        self.opened: dict[Any, Any] = {}

    def open(self, task: Task) -> Any:
        """Return an iterable of batches, one epoch at each iteration."""
        raise NotImplementedError

    def rows_of(self, batch: Any) -> int:
        """Return how many rows a batch has, after a look at one of them."""
        values = batch["value"]
        if values[0] is None:
            raise RuntimeError
        return len(values)

    def prepare_rate(self, task: Task) -> Works:
        """Read batches for ``seconds``; what is found is samples a second, and seconds to the first batch.

        Later tasks of the same loader find its workers running.
        """
        key = (task.get("uri"), task.get("folder"), task["workers"])
        if key not in self.opened:
            self.opened = {key: self.open(task)}
        loader = self.opened[key]
        return [lambda: self._rate(loader, task["seconds"])]

    def prepare_read(self, task: Task) -> Works:
        """Read ``batches`` batches, for the memory that this takes; what is found is their rows."""
        loader = self.open(task)

        def work() -> int:
            with contextlib.closing(_epochs(loader)) as batches:
                return sum(map(self.rows_of, itertools.islice(batches, task["batches"])))

        return [work]

    def prepare_epoch(self, task: Task) -> Works:
        """Read one epoch; what is found is its rows."""
        loader = self.open(task)
        return [lambda: sum(map(self.rows_of, loader))]

    def _rate(self, loader: Any, seconds: float) -> dict[str, float]:
        begun = time.perf_counter()
        rows, every, first, started = 0, 0, 0.0, begun
        with contextlib.closing(_epochs(loader)) as batches:
            for number, batch in enumerate(batches):
                count = self.rows_of(batch)
                now = time.perf_counter()
                first = first or now - begun
                every += count
                if number < UNCOUNTED:
                    started = now
                    continue
                rows += count
                if now - started > seconds:
                    break
        return {"rate": rows / (now - started), "first": first, "rows": every}


def _epochs(loader: Any) -> Generator[Any]:
    while True:
        yield from loader


def data_loader(data: Any, task: Task, **options: Any) -> Any:
    """Return torch's loader with the workers of a task, which stay for all epochs."""
    from torch.utils.data import DataLoader  # noqa: PLC0415 - a peer's interpreter may not have it

    if workers := task["workers"]:
        options = {"num_workers": workers, "persistent_workers": True, **options}
    return DataLoader(data, **options)


class PennonSide(LoaderSide):
    """`pennon.torch.LanceBatches`: rows shuffled."""

    def open(self, task: Task) -> Any:
        """See `LoaderSide.open`."""
        import pennon.torch  # noqa: PLC0415

        data = pennon.torch.LanceBatches(
            task.get("uri") or f"{task['folder']}/table.lance",
            columns=["value"],
            batch_size=task["batch_size"],
            seed=1,
            **self.order(task),
            **task.get("options", {}),
        )
        return data_loader(data, task, batch_size=None, collate_fn=pennon.torch.collate)

    def order(self, task: Task) -> dict[str, Any]:  # noqa: ARG002
        """Return the options of the order: none."""
        return {}


class PennonBatchesSide(PennonSide):
    """`pennon.torch.LanceBatches`: blocks of neighbouring rows shuffled, a batch each, as `PylanceSide` does."""

    def order(self, task: Task) -> dict[str, Any]:
        """See `PennonSide.order`."""
        return {"block_rows": task["batch_size"], "window_blocks": 0}


class PylanceSide(LoaderSide):
    """`lance.torch.data.LanceDataset` with a sampler that shuffles batches of neighbouring rows.

    Every worker reads all of the table, because the sampler knows no workers; a sample counts each time that it comes.
    """

    def open(self, task: Task) -> Any:
        """See `LoaderSide.open`."""
        import lance  # noqa: PLC0415
        from lance.sampler import ShardedBatchSampler  # noqa: PLC0415
        from lance.torch.data import LanceDataset  # noqa: PLC0415

        tensors: dict[str, Any] = {} if task["kind"] == "vectors" else {"to_tensor_fn": to_lists}
        data = LanceDataset(
            lance.dataset(f"{task['folder']}/table.lance"),
            batch_size=task["batch_size"],
            columns=["value"],
            sampler=ShardedBatchSampler(0, 1, randomize=True),
            **tensors,
        )
        spawned = {"multiprocessing_context": "spawn"} if task["workers"] else {}
        return data_loader(data, task, batch_size=None, **spawned)

    def rows_of(self, batch: Any) -> int:
        """See `LoaderSide.rows_of`; one column of numbers comes as a tensor."""
        return super().rows_of(batch if isinstance(batch, Mapping) else {"value": batch})


def to_lists(batch: Any, **_: Any) -> dict[str, list[Any]]:
    """Return the columns of a batch as lists: pylance has no tensors of texts."""
    return dict(batch.to_pydict())


class PylanceRowsSide(LoaderSide):
    """`lance.torch.data.get_safe_loader`: rows shuffled by torch, each batch taken from the table."""

    def open(self, task: Task) -> Any:
        """See `LoaderSide.open`."""
        from lance.torch.data import SafeLanceDataset, get_safe_loader  # noqa: PLC0415

        data = SafeLanceDataset(f"{task['folder']}/table.lance")  # type: ignore[no-untyped-call]
        size, workers = task["batch_size"], task["workers"]
        if not workers:
            return data_loader(data, task, batch_size=size, shuffle=True)
        return get_safe_loader(data, batch_size=size, num_workers=workers, shuffle=True)  # type: ignore[no-untyped-call]


class HuggingFaceSide(LoaderSide):
    """Hugging Face datasets: Parquet files streamed, shuffled in a buffer of rows."""

    def open(self, task: Task) -> Any:
        """See `LoaderSide.open`."""
        import datasets  # noqa: PLC0415

        datasets.disable_progress_bars()
        files = sorted(map(str, _files(f"{task['folder']}/parquet")))
        stream = datasets.load_dataset(
            "parquet", data_files=files, split="train", streaming=True, columns=["value"]
        )
        buffer = min(BUFFER, BUFFER_BYTES // task["row_bytes"])
        shuffled = stream.shuffle(seed=1, buffer_size=buffer)
        if task["kind"] == "vectors":
            shuffled = shuffled.with_format("torch")
        return data_loader(shuffled, task, batch_size=task["batch_size"], drop_last=True)


class MosaicSide(LoaderSide):
    """MosaicML Streaming: shards in MDS on the local disk, shuffled by py1e, its default."""

    def __init__(self) -> None:
        super().__init__()
        stand_in_for("torchvision.datasets", "VisionDataset")
        stand_in_for("torchvision.transforms.functional", "to_tensor")
        stand_in_for("transformers.feature_extraction_utils", "BatchFeature")
        stand_in_for("transformers.tokenization_utils_base", "BatchEncoding")
        stand_in_for("transformers.models.auto.tokenization_auto", "AutoTokenizer")

    def prepare_write(self, task: Task) -> Works:
        """Write the rows of the Parquet files as MDS."""
        import pyarrow.parquet as pq  # noqa: PLC0415
        from streaming import MDSWriter  # noqa: PLC0415

        def work() -> int:
            target = f"{task['folder']}/mds"
            shutil.rmtree(target, ignore_errors=True)
            rows = 0
            with MDSWriter(out=target, columns={"value": task["mds"]}) as writer:
                for path in _files(f"{task['folder']}/parquet"):
                    for group in pq.ParquetFile(path).iter_batches(1024, columns=["value"]):
                        for value in _values(group.column(0), task["kind"]):
                            writer.write({"value": value})
                            rows += 1
            return rows

        return [work]

    def open(self, task: Task) -> Any:
        """See `LoaderSide.open`."""
        from streaming import StreamingDataset  # noqa: PLC0415
        from streaming.base.util import clean_stale_shared_memory  # noqa: PLC0415

        clean_stale_shared_memory()
        size = task["batch_size"]
        data = StreamingDataset(
            local=f"{task['folder']}/mds", shuffle=True, shuffle_seed=1, batch_size=size
        )
        return data_loader(data, task, batch_size=size, drop_last=True)


def _files(folder: str) -> Iterable[str]:
    return sorted(entry.path for entry in os.scandir(folder))


def _values(column: Any, kind: str) -> Any:
    if kind == "vectors":
        return iter(column.flatten().to_numpy().reshape(len(column), -1))
    return iter(column.to_pylist())


def stand_in_for(module: str, name: str) -> None:
    """Let ``from module import name`` find an empty class.

    MosaicML's package imports torchvision and transformers for data sets and token types that are not measured.
    """
    words = module.split(".")
    for end in range(1, len(words) + 1):
        sys.modules.setdefault(".".join(words[:end]), types.ModuleType(".".join(words[:end])))
    setattr(sys.modules[module], name, type(name, (), {}))


SIDES: Final = {
    "pennon": PennonSide,
    "pennon-batches": PennonBatchesSide,
    "pylance": PylanceSide,
    "pylance-rows": PylanceRowsSide,
    "hf": HuggingFaceSide,
    "mosaic": MosaicSide,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answer_tasks(SIDES[sys.argv[1]]())
