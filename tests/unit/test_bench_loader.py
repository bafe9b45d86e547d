"""The rows, the account and the bucket of ``make bench-loader``."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loader import HEADS, Speed, choices, lines_of
from loader_rows import IMAGE_BYTES, ROWS, TEXT_BYTES, write_rows
from loader_side import to_lists
from process_memory import Own, own
from shapes_object_store import slow_store

import pennon


@pytest.mark.parametrize("name", list(ROWS))
def test_rows_are_the_same_in_the_table_and_in_parquet(tmp_path: Path, name: str) -> None:
    kind, rows = ROWS[name], 40
    write_rows(kind, rows, tmp_path)
    table = pennon.dataset(str(tmp_path / "table.lance"))
    assert len(table.get_fragments()) == 8
    found = table.to_table()
    assert found.num_rows == rows
    assert found == pa.Table.from_batches(kind.batches(rows))
    parts = sorted((tmp_path / "parquet").iterdir())
    assert pa.concat_tables(map(pq.read_table, parts)).cast(found.schema) == found


def test_texts_and_images_have_the_bytes_of_their_kind() -> None:
    for name, size in (("text", TEXT_BYTES), ("images", IMAGE_BYTES)):
        (batch,) = ROWS[name].batches(3)
        assert [len(value) for value in batch["value"].to_pylist()] == [size] * 3
    assert batch.num_rows == 3
    assert to_lists(batch)["id"] == [0, 1, 2]


def test_lines_of_loaders_have_the_ratio_the_aim_and_the_memory() -> None:
    speeds = [
        Speed("text", 2, "pennon", [300.0, 310.0, 290.0], 0.5, 3000, 1000),
        Speed("text", 2, "pennon-batches", [600.0], 0.5, 3000, 1000),
        Speed("text", 2, "pylance", [198.0], 1.5, 1000, 1000),
        Speed("text", 2, "mosaic", [299.0], 1.5, 1000, 1000),
    ]
    ours, _, pylance, mosaic = (dict(zip(HEADS, line, strict=True)) for line in lines_of(speeds))
    assert ours["samples/s"] == "300"
    assert ours["in batches"] == "3.0"
    assert pylance["ratio"] == "3.03"
    assert pylance[""] == "aim 3.0, met"
    assert mosaic[""] == "aim 1.2, NOT met"


def test_choices_of_a_quick_run_have_short_turns() -> None:
    assert choices(["--quick"]).turns < choices([]).turns
    assert choices(["--quick", "--turns", "9", "--kind", "text"]).turns == 9


def test_own_memory_of_a_process_leaves_mapped_files_out(
    tmp_path: Path,
) -> None:
    mapped = tmp_path / "mapped"
    mapped.write_bytes(b"x" * (32 << 20))
    program = (
        "import mmap, sys; file = open(sys.argv[1], 'rb'); "
        "pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ); sum(pages[::4096]); "
        "mine = b'y' * (64 << 20); print('ready', flush=True); input()"
    )
    words = [sys.executable, "-c", program, str(mapped)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = own(process.pid)
        process.communicate(b"\n")
    assert 64 << 20 < found < 90 << 20
    assert own(process.pid) == 0
    watch = Own(os.getpid())
    watch.look([watch.process])
    assert watch.bytes > 0


def test_slow_store_answers_no_faster_than_its_line() -> None:
    with slow_store() as store:
        options = store.options
        rows = pa.table({"x": pa.array(range(125_000), pa.int64())})
        pennon.write_dataset(rows, "s3://bench/t.lance", storage_options=options)
        store.set_line(0, 10)
        begun = time.perf_counter()
        assert pennon.dataset("s3://bench/t.lance", storage_options=options).to_table() == rows
        seconds = time.perf_counter() - begun
        requests, sent = store.set_line(0, 0)
        assert requests > 1
        assert sent > 100_000
        assert seconds > sent / 10e6 * 0.9
