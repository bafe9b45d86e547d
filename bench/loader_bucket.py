"""Training batches from a bucket that takes 30 ms a request and has a line of 50 MB/s: how much of the line is used.

The line is as slow as it is so that the server, which is Python on the same processors, does not limit it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import obstore
import pyarrow as pa
from loader_rows import ROWS, Rows
from measure import OURS, Worker
from obstore.store import S3Store
from shapes_object_store import BUCKET, SlowStore, slow_store

import pennon

MILLISECONDS: Final = 30
MB_PER_SECOND: Final = 50
BYTES: Final = 200 << 20
"""How much the table of a kind of rows holds."""
FRAGMENT_BYTES: Final = 10 << 20
"""moto reads a whole object for each range of it: small ones keep it quick."""
PLAIN_THREADS: Final = 8


def measure_bucket(
    kinds: Sequence[str], python: str, *, quick: bool
) -> Iterator[Mapping[str, Any]]:
    """Yield what each kind of rows gets of the line, with no worker and with two."""
    with slow_store() as store:
        for name in kinds:
            kind = ROWS[name]
            rows = BYTES // kind.row_bytes // (4 if quick else 1)
            uri = f"s3://{BUCKET}/{name}.lance"
            _write(kind, rows, uri, store)
            plain = plain_mb_per_s(store, f"{name}.lance/data/")
            for workers in (0, 2):
                task = {
                    "do": "rate",
                    "round": 1,
                    "uri": uri,
                    "options": {"storage_options": store.options},
                    "kind": name,
                    "row_bytes": kind.row_bytes,
                    "batch_size": kind.batch_size,
                    "workers": workers,
                    "seconds": 2 if quick else 5,
                }
                yield {**_run(task, python, store), "plain_mb_per_s": plain}


def _write(kind: Rows, rows: int, uri: str, store: SlowStore) -> None:
    store.set_line(0, 0)
    pennon.write_dataset(
        pa.RecordBatchReader.from_batches(kind.schema, kind.batches(rows)),
        uri,
        max_rows_per_file=FRAGMENT_BYTES // kind.row_bytes,
        storage_options=store.options,
    )


def _run(task: Mapping[str, Any], python: str, store: SlowStore) -> dict[str, Any]:
    with Worker(OURS, "loader_side.py", python) as worker:
        store.set_line(MILLISECONDS, MB_PER_SECOND)
        found = worker.run(dict(task))["found"]
        requests, sent = store.set_line(0, 0)
    speed = found["rate"] * task["row_bytes"] / 1e6
    return {
        "kind": task["kind"],
        "workers": task["workers"],
        "rate": found["rate"],
        "first": found["first"],
        "mb_per_s": speed,
        "limit_mb_per_s": MB_PER_SECOND,
        "share": speed / MB_PER_SECOND,
        "requests": requests,
        "read_share": sent / max(found["rows"] * task["row_bytes"], 1),
    }


def plain_mb_per_s(store: SlowStore, prefix: str) -> float:
    """Return how fast a program gets whole files that does nothing else, over the same line."""
    source = S3Store(BUCKET, config=_config(store), client_options={"allow_http": True})
    paths = [each["path"] for part in obstore.list(source, prefix) for each in part]
    found = []
    for _ in range(2):
        store.set_line(MILLISECONDS, MB_PER_SECOND)
        begun = time.perf_counter()
        with ThreadPoolExecutor(PLAIN_THREADS) as pool:
            sizes = list(pool.map(lambda path: len(obstore.get(source, path).bytes()), paths))
        found.append(sum(sizes) / (time.perf_counter() - begun) / 1e6)
        store.set_line(0, 0)
    return statistics.median(found)


def _config(store: SlowStore) -> Any:
    return {key: value for key, value in store.options.items() if key.startswith("aws_")}
