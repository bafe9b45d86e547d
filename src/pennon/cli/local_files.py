"""Local files as batches of rows, read by pyarrow: what ``pennon ingest`` writes when Spark is not asked for.

============  ===========================================================================================
csv, tsv      a header line; types of the whole file, or of its first 64 MiB where files are larger than 1 GiB; texts
              that are no UTF-8 are binary
json          objects, one a line, or one array of objects (which is held in memory)
parquet       files with one schema, or with columns that can be cast to that of the first
arrow         IPC files and streams
images        a folder: ``path``, ``label`` (the folder within it, NULL without one) and ``image``, the bytes
============  ===========================================================================================
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.dataset as pds
import pyarrow.json as pjson

from pennon.core.units import MIB
from pennon.errors import ArgumentError, NotFoundError, SchemaMismatchError

FORMATS: Final = ("csv", "tsv", "json", "parquet", "arrow", "images")
_SUFFIXES: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_IMAGES: Final = frozenset(
    {".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"}
)
_COMPRESSED: Final = frozenset({".gz", ".bz2", ".zst", ".lz4"})
_HELD_BYTES: Final = 1024 * MIB
"""Files of text that are no larger are read as a whole, so that each column gets a type for all of its values."""
_BLOCK_BYTES: Final = 64 * MIB
_IMAGE_FIELDS: Final = (
    pa.field("path", pa.string(), nullable=False),
    pa.field("label", pa.string()),
    pa.field("image", pa.large_binary(), nullable=False),
)


@dataclass(frozen=True, slots=True)
class LocalRows:
    """The rows of local files; ``count`` is 0 where it is not known before they are read."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]
    count: int = 0

    @classmethod
    def of_table(cls, table: pa.Table) -> LocalRows:
        """Return the rows of a table in memory."""
        return cls(table.schema, table.to_batches(), table.num_rows)

    def cast(self, schema: pa.Schema) -> LocalRows:
        """Return the rows as a table of another schema has them, columns by their names.

        Raises SchemaMismatchError for a column that the schema does not have, or the rows do not.
        """
        unknown = [name for name in self.schema.names if name not in schema.names]
        absent = [field.name for field in schema if field.name not in self.schema.names]
        if unknown or absent:
            wrong = [f"{name!r} is not in the table" for name in unknown]
            wrong += [f"{name!r} is not in the files" for name in absent]
            message = f"the columns of the files are not those of the table: {', '.join(wrong)}"
            raise SchemaMismatchError(message)
        return replace(self, schema=schema, batches=(_cast(each, schema) for each in self.batches))


def find_files(source: str) -> list[Path]:
    """Return the files of a path, a folder or a pattern such as ``*.csv``; none for what is not local.

    Hidden files, and those whose name begins with an underscore, are left out of folders.
    """
    place = Path(source.removeprefix("file://")).expanduser()
    if place.is_file():
        return [place]
    if place.is_dir():
        return sorted(
            each
            for each in place.rglob("*")
            if each.is_file() and not any(part[0] in "._" for part in each.relative_to(place).parts)
        )
    if any(each in str(place) for each in "*?["):
        root = Path(place.anchor)
        return sorted(each for each in root.glob(str(place.relative_to(root))) if each.is_file())
    return []


def format_of(files: Sequence[Path]) -> str | None:
    """Return the format of files by their suffixes; None if pyarrow reads it not, or there are several."""
    kinds = {_format_of(file) for file in files}
    return kinds.pop() if len(kinds) == 1 else None


def _format_of(file: Path) -> str | None:
    suffixes = [each.lower() for each in file.suffixes]
    last = next((each for each in reversed(suffixes) if each not in _COMPRESSED), "")
    return "images" if last in _IMAGES else _SUFFIXES.get(last)


def read_files(source: str, files: Sequence[Path], kind: str) -> LocalRows:
    """Read files of a format; raises ArgumentError for one that there is not, NotFoundError without files."""
    if not files or (kind == "images" and not _any_image(files)):
        message = f"there is no file of the format {kind} at {source!r}"
        raise NotFoundError(message)
    if kind == "images":
        images = [file for file in files if file.suffix.lower() in _IMAGES]
        return _read_images(Path(source.removeprefix("file://")).expanduser(), images)
    return _READERS[kind](files)


def _any_image(files: Sequence[Path]) -> bool:
    return any(file.suffix.lower() in _IMAGES for file in files)


# --- formats -------------------------------------------------------------------------------------------


def _read_csv(files: Sequence[Path], delimiter: str = ",") -> LocalRows:
    parse = pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pcsv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)

    def whole(file: Path) -> pa.Table:
        return pcsv.read_csv(file, parse_options=parse, convert_options=convert)

    def streamed(file: Path) -> Any:
        options = pcsv.ReadOptions(block_size=_BLOCK_BYTES)
        return pcsv.open_csv(
            file, read_options=options, parse_options=parse, convert_options=convert
        )

    return _read_texts(files, whole, streamed)


def _read_tsv(files: Sequence[Path]) -> LocalRows:
    return _read_csv(files, "\t")


def _read_json(files: Sequence[Path]) -> LocalRows:
    def whole(file: Path) -> pa.Table:
        if _begins_with_bracket(file):
            return _of_array(file)
        options = pjson.ReadOptions(block_size=max(min(file.stat().st_size + 1, 2**31 - 1), 1))
        return pjson.read_json(file, read_options=options)

    def streamed(file: Path) -> Any:
        return pjson.open_json(file, read_options=pjson.ReadOptions(block_size=_BLOCK_BYTES))

    return _read_texts(files, whole, streamed)


def _begins_with_bracket(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4096).lstrip().startswith(b"[")


def _of_array(file: Path) -> pa.Table:
    """Return the objects of a JSON array as rows.  Raises ArgumentError for other values."""
    try:
        found = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        message = f"{file.name} is no JSON: {error}"
        raise ArgumentError(message) from error
    if not all(isinstance(each, dict) for each in found):
        message = f"{file.name} holds values that are no objects, so they are no rows"
        raise ArgumentError(message)
    names = dict.fromkeys(chain.from_iterable(found))
    return pa.table({name: [row.get(name) for row in found] for name in names})


def _read_texts(
    files: Sequence[Path], whole: Callable[[Path], pa.Table], streamed: Callable[[Path], Any]
) -> LocalRows:
    """Read files of text, as a whole if they are small, else as streams with the types of the first block."""
    if sum(file.stat().st_size for file in files) <= _HELD_BYTES:
        return LocalRows.of_table(
            pa.concat_tables([whole(file) for file in files], promote_options="permissive")
        )
    first = streamed(files[0])

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        for file in files[1:]:
            for batch in streamed(file):
                yield _cast(batch, first.schema)

    return LocalRows(first.schema, batches())


def _read_parquet(files: Sequence[Path]) -> LocalRows:
    found = pds.dataset([str(file) for file in files], format="parquet")
    return LocalRows(found.schema, found.to_batches(), found.count_rows())


def _read_arrow(files: Sequence[Path]) -> LocalRows:
    schema = _open_arrow(files[0]).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for file in files:
            for batch in _arrow_batches(_open_arrow(file)):
                yield _cast(batch, schema)

    return LocalRows(schema, batches())


def _arrow_batches(found: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(found, pa.ipc.RecordBatchFileReader):
        return (found.get_batch(number) for number in range(found.num_record_batches))
    return iter(found)


def _open_arrow(file: Path) -> Any:
    source = pa.memory_map(str(file))
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _read_images(source: Path, files: Sequence[Path]) -> LocalRows:
    root = source if source.is_dir() else Path(os.path.commonpath([each.parent for each in files]))
    schema = pa.schema(_IMAGE_FIELDS)

    def batches() -> Iterator[pa.RecordBatch]:
        held: list[tuple[Path, bytes]] = []
        size = 0
        for file in files:
            held.append((file.relative_to(root), file.read_bytes()))
            size += len(held[-1][1])
            if size >= _BLOCK_BYTES or len(held) == 1024:
                yield _images(held, schema)
                held, size = [], 0
        if held:
            yield _images(held, schema)

    return LocalRows(schema, batches(), len(files))


def _images(held: Sequence[tuple[Path, bytes]], schema: pa.Schema) -> pa.RecordBatch:
    labels = [None if path.parent == Path() else path.parent.name for path, _ in held]
    columns = [[path.as_posix() for path, _ in held], labels, [data for _, data in held]]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_READERS: Final[dict[str, Callable[[Sequence[Path]], LocalRows]]] = {
    "csv": _read_csv,
    "tsv": _read_tsv,
    "json": _read_json,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}


def as_vectors(rows: LocalRows, sizes: dict[str, int]) -> LocalRows:
    """Return the rows with lists of some columns as vectors of a fixed length.

    Raises ArgumentError for a column that is not there, or is no list.
    """
    fields = []
    for name in sizes:
        if name not in rows.schema.names or not _is_list(rows.schema.field(name).type):
            message = f"--fixed-size-list names {name!r}, which is no column of lists"
            raise ArgumentError(message)
    for field in rows.schema:
        size = sizes.get(field.name)
        kind = field.type if size is None else pa.list_(field.type.value_type, size)
        fields.append(field.with_type(kind))
    schema = pa.schema(fields, rows.schema.metadata)
    return replace(rows, schema=schema, batches=(_cast(each, schema) for each in rows.batches))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the columns and types of a schema.  Raises SchemaMismatchError for a value that does not fit."""
    arrays = []
    for field in schema:
        try:
            arrays.append(batch.column(field.name).cast(field.type))
        except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            message = f"column {field.name!r} does not fit {field.type}: {error}"
            raise SchemaMismatchError(message) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
