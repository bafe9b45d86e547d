"""Datasets of Hugging Face, written as they are; run by test_engines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import datasets
import lance
import pyarrow as pa


def made() -> Iterator[dict[str, Any]]:
    """Rows that come one by one."""
    for number in range(2500):
        yield {"id": number, "word": f"word{number % 7}"}


def refusal(call: Callable[[], Any]) -> str:
    """Return the error that refuses a call."""
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError


def main(folder: str) -> None:
    """Check each kind of dataset."""
    whole = datasets.Dataset.from_list(list(made()))
    table: Any = lance.write_dataset(whole, f"{folder}/whole.lance")
    assert table.to_table().to_pylist() == list(made())
    chosen = whole.select([7, 3, 5])
    table = lance.write_dataset(chosen, f"{folder}/chosen.lance")
    assert table.to_table()["id"].to_pylist() == [7, 3, 5]
    streamed = whole.to_iterable_dataset(num_shards=2)
    table = lance.write_dataset(streamed, f"{folder}/streamed.lance")
    assert table.to_table().to_pylist() == list(made())
    unknown = datasets.IterableDataset.from_generator(made)
    schema = pa.schema([("id", pa.int32()), ("word", pa.string())])
    table = lance.write_dataset(unknown, f"{folder}/unknown.lance", schema=schema)
    assert table.schema == schema
    assert table.count_rows() == 2500
    several = datasets.DatasetDict(train=whole)
    for data, said in ((unknown, "say schema="), (several, "write one of them: 'train'")):
        assert said in refusal(partial(lance.write_dataset, data, f"{folder}/no.lance"))


if __name__ == "__main__":
    main(sys.argv[1])
    print("all steps passed")
