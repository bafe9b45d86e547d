"""Convert user input to a stream of record batches."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

import pyarrow as pa

from pennon.core.units import MIB
from pennon.errors import ArgumentError
from pennon.file.container.input_check import InputCheck
from pennon.ops.fit import fit_batch
from pennon.schema.blob import has_blobs_v2
from pennon.schema.blob_arrays import written_schema
from pennon.schema.width import row_bytes

BATCH_BYTES: Final = 16 * MIB
"""So much of a pyarrow dataset is read at once; its own batches go by rows."""
_ARROW_BATCH_ROWS: Final = 131_072

_HUGGING_FACE_ROWS = 1000
_DICT_ROWS = 1024


def as_reader(
    data: Any, schema: pa.Schema | None = None, *, validate: bool = True
) -> pa.RecordBatchReader:
    """Return the data as a reader; nothing that streams is read before the reader is.

    Taken are: a Table, RecordBatch or RecordBatchReader; a pandas or polars frame; a Dataset or
    Scanner (pyarrow's, ours or pylance's); a dict of lists; a list of dicts; whatever offers
    ``__arrow_c_stream__`` (a duckdb relation, a Spark DataFrame's Arrow table); a Dataset or IterableDataset of
    Hugging Face; and an iterable of record batches, or of dicts, which needs ``schema``.  ``schema`` is used where the data has no schema.

    Raises TypeError for anything else, ArgumentError if a schema is needed.  With ``validate`` the
    reader raises ArgumentError for arrays that are not valid (`InputCheck`).
    """
    reader = _reader_of(data, schema, validate=validate)
    if not validate:
        return reader
    return pa.RecordBatchReader.from_batches(reader.schema, InputCheck().checked(reader))


def _reader_of(data: Any, schema: pa.Schema | None, *, validate: bool) -> pa.RecordBatchReader:
    if isinstance(data, (str, os.PathLike)):
        message = (
            f"the data to write is the text {os.fspath(data)!r}; rows come first and the table's place second. A file "
            "is read first: pyarrow.csv.read_csv, pyarrow.parquet.read_table, pyarrow.dataset.dataset, pennon.dataset, "
            "or on Spark pennon.spark.ingest"
        )
        raise ArgumentError(message)
    for convert in (_known_arrow, _frame, _hugging_face, _models, _python_values, _arrow_stream):
        reader = convert(data, schema)
        if reader is not None:
            return reader
    if isinstance(data, Iterable):
        return _batches(data, schema, InputCheck() if validate else None)
    message = (
        f"data of type {type(data).__name__} is not taken; give a Table, RecordBatch or reader, "
        "a pandas or polars frame, a dataset or scanner, a list of dicts, a dict of lists, or an "
        "iterable of record batches or dicts together with a schema"
    )
    raise TypeError(message)


def _known_arrow(data: Any, _: pa.Schema | None) -> pa.RecordBatchReader | None:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if callable(getattr(data, "to_reader", None)):  # a scanner
        return _reader(data.to_reader())
    if callable(getattr(data, "scanner", None)):  # a dataset
        return _dataset(data)
    return None


def _dataset(data: Any) -> pa.RecordBatchReader:
    """Return the rows of a dataset; of a table of ours, with the bytes of blobs, to be written as such."""
    snapshot = getattr(data, "snapshot", None)
    if snapshot is None:
        return _reader(data.scanner(**_scan_options(data)).to_reader())
    reader = _reader(data.scanner(blob_handling="all_binary").to_reader())
    if not has_blobs_v2(snapshot.manifest.schema):
        return reader
    whole = written_schema(snapshot.manifest.schema)
    shown = [whole.field(mine.name) if mine.name in whole.names else mine for mine in reader.schema]
    target = pa.schema(shown, reader.schema.metadata)
    return pa.RecordBatchReader.from_batches(target, (fit_batch(each, target) for each in reader))


def _scan_options(data: Any) -> dict[str, int]:
    """Return the options of a pyarrow dataset of wide rows: small batches, and little read-ahead.

    By its own defaults 16 batches of 131,072 rows of each of 4 files wait in memory.
    """
    if not type(data).__module__.startswith("pyarrow"):
        return {}  # pylance's, say, whose scans see to it themselves
    row = max(row_bytes(data.schema), _parquet_row_bytes(data), 1)
    rows = max(BATCH_BYTES // row, 1)
    if rows >= _ARROW_BATCH_ROWS:
        return {}
    return {"batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1}


def _parquet_row_bytes(data: Any) -> int:
    """Return the mean width of rows by the footer of the first Parquet file, 0 for other files."""
    fragment = next(iter(data.get_fragments()), None)
    metadata: Any = getattr(fragment, "metadata", None)
    if not hasattr(metadata, "row_group") or not metadata.num_rows:
        return 0
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return int(sum(each.total_byte_size for each in groups) // metadata.num_rows)


def _reader(made: Any) -> pa.RecordBatchReader:
    reader: pa.RecordBatchReader = made
    return reader


def _frame(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return pa.Table.from_pandas(data, schema=schema).to_reader()
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.DataFrame):
        return _reader(data.to_arrow().to_reader())
    return None


def _hugging_face(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    """Read a Dataset or IterableDataset of Hugging Face, a thousand rows in a batch."""
    module = sys.modules.get("datasets")
    several = _classes(module, "DatasetDict", "IterableDatasetDict")
    if isinstance(data, several):
        message = f"this has several datasets, write one of them: {', '.join(map(repr, data))}"
        raise ArgumentError(message)
    if not isinstance(data, _classes(module, "Dataset", "IterableDataset")):
        return None
    if data.features is None and schema is None:
        message = "this IterableDataset does not know its features: say schema="
        raise ArgumentError(message)
    target = data.features.arrow_schema if schema is None else schema
    tables = data.with_format("arrow").iter(_HUGGING_FACE_ROWS)
    batches = (batch for each in tables for batch in each.cast(target).to_batches())
    return pa.RecordBatchReader.from_batches(target, batches)


def _models(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    """Read a list of pydantic models, all of one class, whose fields give the schema."""
    base = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    if base is None or not (isinstance(data, list) and data and isinstance(data[0], base)):
        return None
    models = import_module("pennon.schema.pydantic_models")
    rows = models.rows_of_models(data, type(data[0]))
    found = models.pydantic_to_schema(type(data[0])) if schema is None else schema
    return pa.Table.from_pylist(rows, schema=found).to_reader()


def _classes(module: object, *names: str) -> tuple[type[Any], ...]:
    """Return the classes of a module that may be absent, or another one of that name."""
    found = (getattr(module, name, None) for name in names)
    return tuple(each for each in found if isinstance(each, type))


def _python_values(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    if isinstance(data, dict):
        return pa.Table.from_pydict(data, schema=schema).to_reader()
    if isinstance(data, list) and data and isinstance(data[0], dict):
        return pa.Table.from_pylist(data, schema=schema).to_reader()
    return None


def _arrow_stream(data: Any, _: pa.Schema | None) -> pa.RecordBatchReader | None:
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    return None


def _batches(
    data: Iterable[Any], schema: pa.Schema | None, check: InputCheck | None
) -> pa.RecordBatchReader:
    if schema is None:
        message = "an iterable of record batches or dicts needs a schema"
        raise ArgumentError(message)
    return pa.RecordBatchReader.from_batches(schema, _cast_batches(data, schema, check))


def _cast_batches(
    data: Iterable[Any], schema: pa.Schema, check: InputCheck | None
) -> Iterator[pa.RecordBatch]:
    for batch in _of_dicts(data, schema):
        if not isinstance(batch, pa.RecordBatch):
            message = f"expected a RecordBatch, got {type(batch).__name__}"
            raise TypeError(message)
        if batch.schema.equals(schema):
            yield batch
            continue
        if check is not None:  # a cast believes what it is given
            check.check(batch)
        yield _cast(batch, schema)


def _of_dicts(data: Iterable[Any], schema: pa.Schema) -> Iterator[Any]:
    """Yield batches as they are, and of dicts one after the other batches of so many rows."""
    rows: list[dict[str, Any]] = []
    for each in data:
        if isinstance(each, dict):
            rows.append(each)
        if rows and (len(rows) == _DICT_ROWS or not isinstance(each, dict)):
            yield pa.RecordBatch.from_pylist(rows, schema=schema)
            rows = []
        if not isinstance(each, dict):
            yield each
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return batch.cast(schema)
    except (pa.ArrowInvalid, ValueError) as error:
        message = f"a batch has not the schema that was given: {error}"
        raise ArgumentError(message) from error


def check_metadata(schema: pa.Schema) -> None:
    """Raise ArgumentError if schema metadata is not text, which is all that a manifest may hold."""
    for key, value in (schema.metadata or {}).items():
        try:
            value.decode()
        except UnicodeDecodeError:
            message = f"schema metadata {key!r} is not UTF-8; encode binary metadata as base64"
            raise ArgumentError(message) from None
