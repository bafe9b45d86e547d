"""Rows as a table for people, JSON, JSON lines, CSV, Arrow or Parquet: to stdout or to a file.

::

    table      cells for people, cut where they are long          stdout only
    json       an array of objects                                 .json
    jsonl      an object a line                                    .jsonl .ndjson
    csv        a header; NULL is nothing, an empty text is ""      .csv
    arrow      an IPC stream; to a file .arrow or .feather: an IPC file
    parquet                                                        .parquet .pq

`pennon.display.plain` says how values look in JSON; nested and binary values of CSV look the same.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import pyarrow as pa
from pyarrow import types

from pennon.cli.show import (
    binary_stdout,
    cell,
    json_text,
    print_table,
    until_pipe_closes,
    write_text,
)
from pennon.display.plain import plain_column, plain_rows
from pennon.errors import AlreadyExistsError, ArgumentError

Batches: TypeAlias = Iterable[pa.RecordBatch]
SUFFIXES: Final = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".parquet": "parquet",
    ".pq": "parquet",
}
STREAMS: Final = frozenset({".arrows"})
"""Suffixes of Arrow's stream format; other files of Arrow get the file format."""


@dataclass(frozen=True, slots=True)
class RowOutput:
    """The format of rows, and the file that they go to; None is stdout."""

    format: str
    file: Path | None = None
    overwrite: bool = False

    @classmethod
    def of(
        cls,
        format: str | None,
        output: str | None,
        *,
        as_json: bool = False,
        overwrite: bool = False,
    ) -> RowOutput:
        """Return the output that options ask for.

        Raises ArgumentError if they contradict each other, or no format is known for the suffix.
        """
        if as_json and format not in {None, "json"}:
            message = f"--json and --format {format} are two formats; give one"
            raise ArgumentError(message)
        chosen = "json" if as_json else format
        if output is None or output == "-":
            return cls(chosen or "table")
        file = Path(output)
        chosen = chosen or SUFFIXES.get(file.suffix.lower())
        if chosen is None or chosen == "table":
            message = (
                f"the format of {output!r} is not clear; --format is one of "
                f"{', '.join(sorted(set(SUFFIXES.values())))}"
            )
            raise ArgumentError(message)
        return cls(chosen, file, overwrite)

    def write(self, schema: pa.Schema, batches: Batches) -> int:
        """Write rows, and return how many there were.

        Raises AlreadyExistsError for a file that is there, ArgumentError for binary rows to a terminal.
        """
        if self.format == "table":
            return _print_rows(schema, batches)
        counted = _Counted(batches)
        write = _WRITERS[self.format]
        if self.file is None:
            with until_pipe_closes():
                write(schema, counted, _Stdout(self.format))
                sys.stdout.flush()
        else:
            with replaced(self.file, overwrite=self.overwrite) as stream:
                write(schema, counted, _File(stream, self.file.suffix.lower() in STREAMS))
        return counted.rows


@contextmanager
def replaced(file: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """Give a stream whose bytes become a file when all are written; none, if an error comes before.

    Raises AlreadyExistsError for a file that is there, unless it may be overwritten.
    """
    if file.exists() and not overwrite:
        message = f"there is a file {str(file)!r} already; --overwrite replaces it"
        raise AlreadyExistsError(message)
    if file.exists() and not file.is_file():  # a pipe or a device cannot be replaced
        with file.open("wb") as stream:
            yield stream
        return
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as stream:
            yield stream
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class _Counted:
    """Passes batches on, and counts their rows."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


class _Open(io.RawIOBase):
    """A stream that writers of Arrow may close without closing the one below."""

    def __init__(self, below: IO[bytes]) -> None:
        super().__init__()
        self._below = below

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write all bytes, and return how many there were."""
        view = memoryview(data)
        self._below.write(view)
        return view.nbytes


class _Stdout:
    """Stdout as the place that rows go to."""

    is_stream = True

    def __init__(self, format: str) -> None:
        self._format = format

    def text(self, text: str) -> None:
        """Write text; what a terminal obeys is escaped there, and kept in a pipe or file."""
        write_text(text)

    def json(self, value: Any) -> str:
        """Return JSON in the characters that stdout has."""
        return json_text(value)

    @property
    def binary(self) -> _Open:
        """Return the stream for bytes."""
        return _Open(binary_stdout(self._format))


class _File:
    """A file as the place that rows go to, in UTF-8."""

    def __init__(self, stream: IO[bytes], is_stream: bool) -> None:
        self.binary = _Open(stream)
        self.is_stream = is_stream

    def text(self, text: str) -> None:
        """Write text."""
        self.binary.write(text.encode("utf-8", "backslashreplace"))

    def json(self, value: Any) -> str:
        """Return JSON."""
        return json.dumps(value, ensure_ascii=False, allow_nan=False)


_Target: TypeAlias = _Stdout | _File


def _print_rows(schema: pa.Schema, batches: Batches) -> int:
    rows = [row for batch in batches for row in plain_rows(batch, _bytes_text)]
    cells = ([cell(_cell_value(row[name])) for name in schema.names] for row in rows)
    numbers = [i for i, field in enumerate(schema) if _is_number(field.type)]
    if schema.names:
        print_table(schema.names, cells, numbers)
    else:
        write_text(f"({len(rows):,} rows without columns)\n")
    return len(rows)


def _cell_value(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _bytes_text(data: bytes) -> str:
    """Return the first bytes as Python shows them; a cell is short."""
    return repr(data[:64])


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type)
    )


def _write_json(_schema: pa.Schema, batches: Batches, target: _Target) -> None:
    before = "["
    for batch in batches:
        rows = [target.json(row) for row in plain_rows(batch)]
        if rows:
            target.text(f"{before}\n" + ",\n".join(rows))
            before = ","
    target.text("[]\n" if before == "[" else "\n]\n")


def _write_json_lines(_schema: pa.Schema, batches: Batches, target: _Target) -> None:
    for batch in batches:
        rows = [target.json(row) for row in plain_rows(batch)]
        if rows:
            target.text("\n".join(rows) + "\n")


def _write_csv(schema: pa.Schema, batches: Batches, target: _Target) -> None:
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(schema.names)
    target.text(head.getvalue())
    options = import_module("pyarrow.csv").WriteOptions(include_header=False)
    for batch in batches:
        if not batch.num_rows or not batch.num_columns:
            continue
        made = io.BytesIO()
        import_module("pyarrow.csv").write_csv(_with_texts(batch), made, options)
        target.text(made.getvalue().decode("utf-8"))


def _with_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in which columns that CSV has no form for are texts."""
    columns = [_csv_column(*each) for each in zip(batch.schema, batch.columns, strict=True)]
    names = [str(number) for number in range(len(columns))]
    return pa.RecordBatch.from_arrays(columns, names)


def _csv_column(field: pa.Field[Any], column: pa.Array[Any]) -> pa.Array[Any]:
    kind = column.type
    is_native = types.is_integer(kind) or types.is_boolean(kind) or types.is_string(kind)
    if is_native or types.is_large_string(kind):
        return column
    if types.is_float32(kind) or types.is_float64(kind):
        return column
    values = plain_column(field, column)
    if types.is_floating(kind):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    texts = [
        v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values
    ]
    return pa.array(texts, pa.large_string())


def _write_arrow(schema: pa.Schema, batches: Batches, target: _Target) -> None:
    make: Callable[..., Any] = pa.ipc.new_stream if target.is_stream else pa.ipc.new_file
    with make(pa.PythonFile(target.binary, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_parquet(schema: pa.Schema, batches: Batches, target: _Target) -> None:
    stream = target.binary
    with import_module("pyarrow.parquet").ParquetWriter(stream, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: Final[dict[str, Callable[[pa.Schema, Batches, Any], None]]] = {
    "json": _write_json,
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    "arrow": _write_arrow,
    "parquet": _write_parquet,
}
