"""Tables as datasets of Hugging Face."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.open import dataset
from pennon.errors import NotFoundError
from pennon.hf.package import hugging_face
from pennon.io.paths import child_uri
from pennon.io.registry import open_store


def load_dataset(
    uri: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    version: int | str | None = None,
    streaming: bool = False,
    features: Any = None,
    batch_size: int = 256,
    storage_options: Mapping[str, str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Any:
    """Read a table as a Dataset of Hugging Face, or with ``streaming`` as an IterableDataset.

    The features are those that `save_dataset` stored; ``features``, a dict by names of columns, replaces
    some: ``{"image": datasets.Image()}`` decodes a binary column.  A folder of tables ``{split}.lance``
    gives a DatasetDict, or with ``streaming`` an IterableDatasetDict.

    A stream reads only the ``columns`` and only rows that match ``filter`` (SQL), ``batch_size`` rows at once.
    Its shards are the table's fragments: workers of a data loader read different ones, and
    ``state_dict`` resumes in the middle.  Without ``streaming`` these rows are first copied into Arrow files
    in ``cache_dir`` (by default that of ``datasets``), which are memory-mapped, and used again for the same version.

    Raises NotFoundError if there is no table and no folder of tables; ModuleNotFoundError without the package
    ``datasets``.

    >>> import pyarrow as pa
    >>> import pennon
    >>> from pennon import hf
    >>> table = pa.table({"id": [1, 2, 3], "word": ["red", "blue", "green"]})
    >>> _ = pennon.write_dataset(table, "words.lance")
    >>> rows = hf.load_dataset("words.lance", columns=["word"], filter="id > 1", streaming=True)
    >>> list(rows)
    [{'word': 'blue'}, {'word': 'green'}]
    """
    known = hugging_face()
    place = os.fspath(uri)
    read = {"columns": columns, "filter": filter, "features": features, "batch_size": batch_size}
    options = dict(storage_options or {})
    try:
        table = dataset(place, version, storage_options=options)
    except NotFoundError:
        splits = _splits(place, options)
        if not splits:
            raise
        several = {
            name: _load(dataset(each, storage_options=options), read, options, cache_dir, streaming=streaming)
            for name, each in splits.items()
        }  # fmt: skip
        return (known.IterableDatasetDict if streaming else known.DatasetDict)(several)
    return _load(table, read, options, cache_dir, streaming=streaming)


def _splits(uri: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the tables ``{split}.lance`` of a folder."""
    folders = open_store(uri, options).list_folders("")
    names = [each for each in folders if each.endswith(".lance")]
    return {name.removesuffix(".lance"): child_uri(uri, name) for name in names}


def _load(
    table: LanceDataset,
    read: Mapping[str, Any],
    options: Mapping[str, str],
    cache_dir: str | os.PathLike[str] | None,
    *,
    streaming: bool,
) -> Any:
    from pennon.hf.builder import TableBuilder  # noqa: PLC0415 - saves datasets

    columns = read["columns"]
    builder = TableBuilder(
        cache_dir=cache_dir,
        dataset_name="lance",
        hash=_fingerprint(table),
        storage_options=dict(options),
        uri=table.uri,
        table_version=table.version,
        columns=None if columns is None else list(columns),
        filter=read["filter"],
        column_features=dict(read["features"] or {}),
        batch_size=read["batch_size"],
    )
    if streaming:
        return builder.as_streaming_dataset(split="train")
    builder.download_and_prepare()
    return builder.as_dataset(split="train")


def _fingerprint(table: LanceDataset) -> str:
    """Return what tells the rows of a version from all others, also of a table that was there before."""
    manifest = table.snapshot.manifest
    files = [file.path for fragment in manifest.fragments for file in fragment.files]
    said = json.dumps([table.uri, table.version, manifest.timestamp_ns, files])
    return hashlib.sha256(said.encode()).hexdigest()
