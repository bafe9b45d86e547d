"""Tables and commits that a caller makes by hand."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import SchemaMismatchError
from pennon.fragment import FragmentMetadata
from pennon.schema.lance_schema import LanceSchema

I64 = pa.int64()
A, B, C, D = (pa.field(name, I64) for name in "abcd")
ROWS = pa.table({"a": [1, 2], "b": [10, 20], "c": [100, 200]})


def table_with_a_gap(uri: str, version: str | None = None) -> pennon.LanceDataset:
    """Return a table whose field ids are a 0, c 2, d 3: b was dropped."""
    dataset = pennon.write_dataset(ROWS, uri, data_storage_version=version)
    dataset.drop_columns(["b"])
    dataset.add_columns({"d": "a * 2"})
    return dataset


def renumbered(fields: Iterable[pa.Field[Any]] | pa.Schema) -> LanceSchema:
    return LanceSchema.from_pyarrow(pa.schema(fields))


def metadata(dataset: pennon.LanceDataset) -> list[FragmentMetadata]:
    return [fragment.metadata for fragment in dataset.get_fragments()]


def commit(dataset: pennon.LanceDataset, operation: Any) -> pennon.LanceDataset:
    return pennon.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def refused(dataset: pennon.LanceDataset, operation: Any, match: str) -> None:
    """Check that a commit is refused by a URI and by a dataset, and changes nothing."""
    before = pennon.dataset(dataset.uri)
    for target in (dataset.uri, dataset):
        with pytest.raises(SchemaMismatchError, match=match):
            pennon.LanceDataset.commit(target, operation, read_version=dataset.version)
    assert pennon.dataset(dataset.uri).version == before.version
    assert pennon.dataset(dataset.uri).to_table().equals(before.to_table())


Sent = Callable[[list[FragmentMetadata]], list[FragmentMetadata]]
WAYS: dict[str, Sent] = {
    "here": lambda fragments: fragments,
    "pickled": lambda fragments: pickle.loads(pickle.dumps(fragments)),
    "json": lambda fragments: [
        FragmentMetadata.from_json(json.dumps(each.to_json())) for each in fragments
    ],
}
