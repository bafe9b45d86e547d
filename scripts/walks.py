"""Count the files that seven common ways enter: how much of the house a reader of the code must know.

``python scripts/walks.py`` prints a line a way; ``--files`` the files of each, in the order entered.
A file counts when a function of it is called; what is imported, and never called, does not.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np
import pyarrow as pa

import pennon

SOURCE = Path(pennon.__file__).parent
SEARCHED = ("scan/", "index/")
GROUND = ("encoding/", "io/", "schema/", "core/", "compat/", "errors.py")


class Walk:
    """The files of the package in which a function was called, in order; ``beside`` are left out, or all but ``only``."""

    def __init__(self, *beside: str, only: tuple[str, ...] = ("",)) -> None:
        self._beside, self._only = beside, only
        self.files: dict[str, None] = {}

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(SOURCE)) and frame.f_code.co_name != "<module>":
            name = str(Path(path).relative_to(SOURCE))
            if name.startswith(self._only) and not name.startswith(self._beside):
                self.files[name] = None

    def __enter__(self) -> Self:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def table() -> pa.Table:
    """Return some rows: numbers and texts."""
    return pa.table(
        {"id": pa.array(range(10_000)), "t": [f"text {i % 977}" for i in range(10_000)]}
    )


def filtered_scan(folder: Path) -> Walk:
    """A scan with a condition, of an open table: the rooms above files, manifests and expressions."""
    pennon.write_dataset(table(), folder / "scan")
    dataset = pennon.dataset(folder / "scan")
    with Walk(*GROUND, "file/", "table/", "expr/") as walk:
        dataset.to_table(["t"], filter="id < 100")
    return walk


def append(folder: Path) -> Walk:
    """An append, its commit with it: all but data files and their pages."""
    dataset = pennon.write_dataset(table(), folder / "append")
    with Walk(*GROUND, "file/") as walk:
        pennon.write_dataset(table(), dataset, mode="append")
    return walk


def take(folder: Path) -> Walk:
    """A hundred rows by their numbers, of an open table: down to the file layer."""
    pennon.write_dataset(table(), folder / "take")
    dataset = pennon.dataset(folder / "take")
    with Walk(*GROUND, "table/") as walk:
        dataset.take(list(range(0, 10_000, 100)))
    return walk


def spark_read(folder: Path) -> Walk:
    """What Spark's reader does, on the driver and in a task, without Spark itself."""
    from pennon.spark.source.data_source import LanceDataSource  # noqa: PLC0415 - needs pyspark

    pennon.write_dataset(table(), folder / "spark")
    with Walk(*GROUND, "file/", "table/") as walk:
        source = LanceDataSource({"path": str(folder / "spark")})
        reader = source.reader(source.schema())
        for partition in reader.partitions():
            list(reader.read(partition))
    return walk


def page(folder: Path) -> Walk:
    """One page of version 2.1, from a file that is open, to Arrow."""
    from pennon.file import LanceFileReader, LanceFileWriter  # noqa: PLC0415

    rows = table()
    with LanceFileWriter(str(folder / "p.lance"), rows.schema, version="2.1") as writer:
        writer.write_batch(rows)
    reader = LanceFileReader(str(folder / "p.lance"))
    with Walk("core/", "io/", "schema/") as walk:
        reader.read_all().to_table()
    return walk


def vectors() -> pa.Table:
    """Return some rows with vectors of 16 numbers."""
    rng = np.random.default_rng(1)
    numbers = pa.array(rng.random(16 * 2000, np.float32))
    return pa.table({"id": range(2000), "v": pa.FixedSizeListArray.from_arrays(numbers, 16)})


def nearest(folder: Path) -> Walk:
    """A search for near vectors by an IVF_PQ index, of an open table: the files of scans and indices."""
    dataset = pennon.write_dataset(vectors(), folder / "nearest")
    dataset.create_index("v", "IVF_PQ", num_partitions=4, num_sub_vectors=4)
    with Walk(only=SEARCHED) as walk:
        dataset.to_table(nearest={"column": "v", "q": [0.5] * 16, "k": 5})
    return walk


def btree(folder: Path) -> Walk:
    """A filter that a BTREE answers, of an open table: the files of scans and indices."""
    dataset = pennon.write_dataset(table(), folder / "btree")
    dataset.create_scalar_index("id", "BTREE")
    with Walk(only=SEARCHED) as walk:
        dataset.to_table(["t"], filter="id = 100")
    return walk


WAYS: dict[str, Callable[[Path], Walk]] = {
    "filtered scan": filtered_scan,
    "append with its commit": append,
    "take(100)": take,
    "Spark read": spark_read,
    "a page of 2.1 to Arrow": page,
    "nearest= by IVF_PQ": nearest,
    "a filter that asks a BTREE": btree,
}


def main() -> None:
    """Print the ways."""
    with tempfile.TemporaryDirectory() as folder:
        for way in WAYS.values():
            way(Path(folder))  # what is imported or remembered the first time is no part of the way
        for number, (name, way) in enumerate(WAYS.items()):
            again = Path(folder) / str(number)
            again.mkdir()
            walk = way(again)
            print(f"{name:36} {len(walk.files)}")
            if "--files" in sys.argv:
                print("".join(f"    {file}\n" for file in walk.files))


if __name__ == "__main__":
    main()
