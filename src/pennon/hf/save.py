"""Datasets of Hugging Face as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal

import pyarrow as pa

from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import write_dataset
from pennon.errors import ArgumentError
from pennon.hf.package import hugging_face, is_array
from pennon.io.paths import child_uri

_ROWS: Final = 1000


def save_dataset(
    data: Any,
    uri: str | os.PathLike[str],
    *,
    mode: Literal["create", "append", "overwrite"] = "create",
    embed_external_files: bool = True,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> LanceDataset | dict[str, LanceDataset]:
    """Write a Dataset or IterableDataset of Hugging Face as a table, with its features.

    The features stand in the table's schema, where `load_dataset` finds them, and ``datasets.load_dataset``
    too.  A DatasetDict becomes a folder of tables ``{split}.lance``; it is returned as a dict.
    Rows go batch by batch, a thousand in memory.

    ``embed_external_files``: images, audio and videos that are only a path get the bytes of their file; without
    it a table has paths, which mean nothing on another machine.  ``options`` are those of
    `pennon.write_dataset`.

    Raises ArgumentError for anything else than a dataset, and for an IterableDataset that neither knows its features
    nor has a row; UnsupportedError if the package ``datasets`` is not installed.

    >>> import datasets
    >>> from pennon import hf
    >>> rows = datasets.Dataset.from_dict({"id": [1, 2], "label": [0, 1]})
    >>> rows = rows.cast_column("label", datasets.ClassLabel(names=["cat", "dog"]))
    >>> hf.save_dataset(rows, "animals.lance").count_rows()
    2
    >>> hf.load_dataset("animals.lance").features["label"].names
    ['cat', 'dog']
    """
    known = hugging_face()
    if isinstance(data, (known.DatasetDict, known.IterableDatasetDict)):
        return {
            name: _save(
                each, child_uri(os.fspath(uri), f"{name}.lance"), embed_external_files, mode=mode,
                storage_options=storage_options, **options,
            )
            for name, each in data.items()
        }  # fmt: skip
    if not isinstance(data, (known.Dataset, known.IterableDataset)):
        message = (
            f"expected a Dataset, an IterableDataset or a dict of them, got {type(data).__name__}"
        )
        raise ArgumentError(message)
    return _save(
        data, uri, embed_external_files, mode=mode, storage_options=storage_options, **options
    )


def _save(data: Any, uri: str | os.PathLike[str], embed: bool, **options: Any) -> LanceDataset:
    tables = iter(data.with_format("arrow").iter(_ROWS))
    features = data.features
    if features is None:
        first = next(tables, None)
        if first is None:
            message = "this IterableDataset has no rows and does not know its features: nothing says what to write"
            raise ArgumentError(message)
        tables = chain([first], tables)
        features = hugging_face().Features.from_arrow_schema(first.schema)
    schema = _written(features.arrow_schema)
    batches = _batches(tables, features, schema, embed=embed)
    return write_dataset(pa.RecordBatchReader.from_batches(schema, batches), uri, **options)


def _batches(
    tables: Iterable[pa.Table], features: Any, schema: pa.Schema, *, embed: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with the types of the features, and the bytes of files."""
    functions = hugging_face("datasets.table")
    for table in tables:
        cast = functions.table_cast(table, features.arrow_schema)
        whole = functions.embed_table_storage(cast) if embed else cast
        columns = [_storage(whole[name], schema.field(name).type) for name in schema.names]
        yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


def _written(schema: pa.Schema) -> pa.Schema:
    """Return a schema without the extension types of Hugging Face, whose storage says all (`Array2D`)."""
    fields = [
        each.with_type(each.type.storage_type) if is_array(each.type) else each for each in schema
    ]
    return pa.schema(fields, schema.metadata)


def _storage(column: pa.ChunkedArray[Any], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    if not is_array(column.type):
        return column
    return pa.chunked_array([chunk.storage for chunk in column.chunks], kind)
