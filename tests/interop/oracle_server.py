"""The other Lance, as a process: reads calls from stdin, answers on stdout.

This file runs in the oracle's own interpreter, so it imports nothing of Pennon.  A line of input is
a JSON list of calls, ``[{"op": "scan", "uri": ...}, ...]``; the line of output that answers it is
the list of their results, ``{"value": ...}`` or ``{"error": "ValueError", "message": "..."}``.
Tables travel as Arrow IPC streams in files: a call names the file, under ``table`` or ``out``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

with suppress(ImportError):  # releases that know file version 0.1 only have none
    import lance.file

MOST_PAGE_BYTES = "LANCE_FILE_WRITER_MAX_PAGE_BYTES"
"""Old releases have no option for it; all take what the environment says when they open a file."""


def _read(path: str) -> pa.Table:
    with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
        return reader.read_all()


def _pieces(table: pa.Table, rows: list[int]) -> Iterator[pa.RecordBatch]:
    """Cut a table at every multiple of each number in ``rows``, and copy the pieces.

    Copied, because Rust wants more alignment than a stream gives, and because both oracles write
    wrong rows, or fail, for some slices of nested arrays.
    """
    cuts = sorted({0, table.num_rows}.union(*(range(0, table.num_rows, n) for n in rows)))
    for start, end in pairwise(cuts):
        piece = table.slice(start, end - start).combine_chunks()
        for batch in piece.to_batches():
            columns = [pa.concat_arrays([c, c.slice(0, 0)]) for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _answer(table: pa.Table, out: str) -> int:
    with pa.OSFile(out, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return table.num_rows


def write(
    uri: str,
    table: str,
    mode: str = "create",
    batch_rows: int | None = None,
    page_bytes: int | None = None,
    **options: Any,
) -> int:
    """Write a table in batches of ``batch_rows``, and pages of at most about ``page_bytes``."""
    os.environ[MOST_PAGE_BYTES] = str(page_bytes or 32 << 20)
    data = _read(table)
    rows = [batch_rows or 1 << 20, options.get("max_rows_per_file", 1 << 20)]
    data = pa.RecordBatchReader.from_batches(data.schema, _pieces(data, rows))
    dataset = lance.write_dataset(data, uri, mode=mode, **options)
    return dataset.version


def write_pages(uri: str, table: str, page_rows: int, **options: Any) -> int:
    """Write a table at version 2.1 or 2.2, all columns in pages of ``page_rows`` in every file.

    Only a writer of one file takes a cache of no bytes, with which each batch is a page.  So the table
    is written as ever, and its second version has files of the same rows and other pages.
    """
    write(uri, table, **options)
    data, dataset = _read(table), lance.dataset(uri)
    fragments, start = [], 0
    for fragment in dataset.get_fragments():
        rows, (file,) = fragment.metadata.physical_rows, fragment.metadata.files
        name = f"pages{fragment.fragment_id}.lance"
        path = Path(uri, "data", name)
        numbers = file.file_major_version, file.file_minor_version
        version = "{}.{}".format(*numbers)
        with lance.file.LanceFileWriter(
            str(path), data.schema, data_cache_bytes=0, version=version
        ) as writer:
            for batch in _pieces(data.slice(start, rows), [page_rows]):
                writer.write_batch(batch)
        columns = file.fields, file.column_indices
        cut = lance.fragment.DataFile(name, *columns, *numbers, path.stat().st_size)
        fragments.append(lance.fragment.FragmentMetadata(fragment.fragment_id, [cut], rows))
        start += rows
    overwrite = lance.LanceOperation.Overwrite(dataset.schema, fragments)
    return lance.LanceDataset.commit(uri, overwrite, read_version=dataset.version).version


def scan(uri: str, out: str, version: int | None = None, **options: Any) -> int:
    """Scan with the options of ``LanceDataset.scanner``; orderings are lists of their arguments."""
    if "order_by" in options:
        from lance.dataset import ColumnOrdering  # old releases have none

        options["order_by"] = [ColumnOrdering(*each) for each in options["order_by"]]
    return _answer(lance.dataset(uri, version=version).scanner(**options).to_table(), out)


def take(uri: str, out: str, indices: list[int], columns: list[str] | None = None) -> int:
    """Take rows by their number in the dataset."""
    return _answer(lance.dataset(uri).take(indices, columns=columns), out)


def take_row_ids(uri: str, out: str, row_ids: list[int], columns: list[str] | None = None) -> int:
    """Take rows by row id."""
    return _answer(lance.dataset(uri)._take_rows(row_ids, columns=columns), out)


def count(uri: str) -> int:
    """Count the rows."""
    return lance.dataset(uri).count_rows()


def versions(uri: str) -> list[int]:
    """Return the numbers of the versions that exist."""
    return [v["version"] for v in lance.dataset(uri).versions()]


def fragments(uri: str) -> list[tuple[int, int, int]]:
    """Return (id, rows, deleted rows) of every fragment."""
    found = lance.dataset(uri).get_fragments()
    return [(f.fragment_id, f.count_rows(), f.num_deletions) for f in found]


def schema(uri: str, out: str) -> int:
    """Return the dataset's Arrow schema, as an empty table."""
    return _answer(lance.dataset(uri).schema.empty_table(), out)


def delete(uri: str, predicate: str) -> int:
    """Delete the rows for which an SQL predicate holds."""
    dataset = lance.dataset(uri)
    dataset.delete(predicate)
    return lance.dataset(uri).version


def drop_columns(uri: str, columns: list[str]) -> None:
    """Drop columns from the schema."""
    lance.dataset(uri).drop_columns(columns)


def add_columns(uri: str, expressions: dict[str, str]) -> None:
    """Add columns by SQL expressions."""
    lance.dataset(uri).add_columns(expressions)


def validate(uri: str) -> None:
    """Let the oracle check the dataset."""
    lance.dataset(uri).validate()


def write_file(path: str, table: str, **options: Any) -> None:
    """Write one data file."""
    data = _read(table)
    with lance.file.LanceFileWriter(path, data.schema, **options) as writer:
        for batch in _pieces(data, [1 << 20]):
            writer.write_batch(batch)


def read_file(path: str, out: str) -> int:
    """Read one data file whole."""
    return _answer(lance.file.LanceFileReader(path).read_all().to_table(), out)


def take_file(path: str, out: str, indices: list[int]) -> int:
    """Read rows of one data file."""
    return _answer(lance.file.LanceFileReader(path).take_rows(indices).to_table(), out)


def point_reads(uri: str, column: str, rows: list[int]) -> list[tuple[int, int]]:
    """Take each row by itself twice; return the requests and bytes of the second time."""
    dataset = lance.dataset(uri)
    found = []
    for row in rows:
        dataset.take([row], columns=[column])
        dataset.io_stats_incremental()
        dataset.take([row], columns=[column])
        stats = dataset.io_stats_incremental()
        found.append((stats.read_iops, stats.read_bytes))
    return found


def about() -> dict[str, str]:
    """Return the versions of the oracle and of its Arrow."""
    return {"lance": lance.__version__, "pyarrow": pa.__version__}


OPERATIONS = {
    f.__name__: f
    for f in (
        *(write, write_pages, scan, take, take_row_ids, count, versions, fragments, schema),
        *(delete, validate, drop_columns, add_columns, write_file, read_file, take_file),
        *(point_reads, about),
    )
}


def _run(call: dict[str, Any]) -> dict[str, Any]:
    """Run one call; a panic of the oracle is no `Exception`, so everything is caught."""
    arguments = dict(call)
    try:
        return {"value": OPERATIONS[arguments.pop("op")](**arguments)}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return {"error": type(error).__name__, "message": str(error)}


def main() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the oracle prints must not mix with the answers
    for line in sys.stdin:
        answers.write(json.dumps([_run(call) for call in json.loads(line)]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
