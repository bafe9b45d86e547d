"""Full-text indices that Pennon writes: pylance finds what Pennon finds, with the same scores."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import lance.query
import numpy as np
import pyarrow as pa
import pytest

import pennon
import pennon.query
from pennon.errors import UnsupportedError
from pennon.file.container.writer import DataFileWriter
from pennon.file.open import create_container_file
from pennon.index.text.documents import Reader
from pennon.index.text.new_partition import TextBuilder
from pennon.index.text.parameters import TextParameters
from pennon.io import open_store
from pennon.schema import schema_from_arrow
from pennon.schema.version import FileVersion
from tests.interop.test_text_search import WORDS, found, is_close

DETAILS = "/lance.table.InvertedIndexDetails"
ROWS = 3000


class Folder:
    """A folder of the file system."""

    def __init__(self, path: Path, version: str) -> None:
        path.mkdir(parents=True)
        self._store, self._version = open_store(str(path)), FileVersion.parse(version)

    @contextmanager
    def file(self, name: str, /, *columns: pa.Field) -> Iterator[DataFileWriter]:
        schema = schema_from_arrow(pa.schema(columns))
        sink = self._store.open_writer(name)
        with create_container_file(sink, schema, self._version, may_be_reserved=True) as writer:
            yield writer
            writer.finish()


def texts(rng: random.Random) -> list[str | None]:
    """Return texts, some tokens of which have posting lists of many blocks."""
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    found: list[str | None] = []
    for row in range(ROWS):
        words = rng.choices(WORDS, weights, k=rng.randrange(1, 30))
        words += [f"only{row}"] * (row % 7 == 0) + ["fox"] * 200 * (row == 1500)
        found.append(None if row % 50 == 3 else " ".join(words))
    return found


def indexed(
    folder: str, values: pa.Array, parameters: TextParameters, details: bytes, **options: Any
) -> int:
    """Write a table of texts, and an index of them; return how many partitions that has."""
    version = options.pop("version", "2.1")
    table = pa.table({"id": pa.array(range(len(values))), "s": values})
    dataset = pennon.write_dataset(table, folder, data_storage_version=version)
    name = str(uuid.uuid4())
    place = Folder(Path(folder) / "_indices" / name, version)
    builder = TextBuilder(place, Reader(parameters, **options.pop("reader", {})), **options)
    for start in range(0, len(values), 512):
        part = values[start : start + 512]
        builder.add(part, np.arange(start, start + len(part), dtype=np.uint64))
    builder.finish()
    index = pennon.Index(
        name, "s_idx", [1], dataset.version, {0}, 2, index_details=(DETAILS, details)
    )
    operation = pennon.LanceOperation.CreateIndex([index], [])
    pennon.LanceDataset.commit(folder, operation, read_version=dataset.version)
    return len(builder.partitions)


PLAIN = TextParameters(with_position=True, stem=False, remove_stop_words=False)
WITH_POSITION = bytes.fromhex(
    "0a0673696d706c65 120922456e676c69736822 1801 2028 2801 4001 4803 5003 608001 7802"
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("partition_bytes", [1 << 30, 900_000])
def test_both_find_the_same(tmp_path: Path, version: str, partition_bytes: int) -> None:
    rng = random.Random(7)
    folder = str(tmp_path / "t.lance")
    values = pa.array(texts(rng), pa.string())
    options = {"version": version, "partition_bytes": partition_bytes}
    partitions = indexed(folder, values, PLAIN, WITH_POSITION, **options)
    assert (partitions > 2) == (partition_bytes < 1 << 30)
    queries: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("MatchQuery", ("fox", "s"), {}),
        ("MatchQuery", ("alpha fox only7", "s"), {}),
        ("MatchQuery", ("only700", "s"), {"fuzziness": 1}),
        ("MatchQuery", ("quick beta", "s"), {"operator": "AND"}),
        ("PhraseQuery", ("quick fox", "s"), {}),
        ("PhraseQuery", ("fox fox fox", "s"), {}),
    ]
    for name, words, more in queries:
        for limit in (None, 10):
            answers = []
            for module, door in ((pennon, pennon.query), (lance, lance.query)):
                settings = dict(more)
                if "operator" in settings:
                    settings["operator"] = door.FullTextOperator(settings["operator"])
                query = getattr(door, name)(*words, **settings)
                rows = module.dataset(folder).to_table(
                    ["id", "_score"], full_text_query=query, limit=limit
                )
                answers.append(found(rows))
            mine, known = answers
            where = name, words, limit
            assert len(mine) == len(known) > 0, where
            pairs = zip(mine.values(), known.values(), strict=True)
            assert all(is_close(one, other) for one, other in pairs), where
            assert limit or set(mine) == set(known), where
    plan = pennon.dataset(folder).scanner(full_text_query="fox").explain_plan()
    assert "MatchQuery: column=s, query=[fox]" in plan
    assert "Flat" not in plan


def test_items_of_lists(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    values = pa.array([["quick fox", "dog"], None, ["fox"], []], pa.list_(pa.string()))
    indexed(folder, values, PLAIN, WITH_POSITION, reader={"by_item": True})
    rows = pennon.dataset(folder).to_table(["id"], full_text_query="fox")
    assert rows.drop_columns("_score").to_pylist() == [
        {"id": 2, "_doc_index": [0]},
        {"id": 0, "_doc_index": [0]},
    ]


def test_no_text_at_all(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    indexed(folder, pa.array([None, ""], pa.string()), PLAIN, WITH_POSITION)
    assert pennon.dataset(folder).to_table(full_text_query="fox").num_rows == 0
    assert lance.dataset(folder).to_table(full_text_query="fox").num_rows == 0


def test_blocks_of_256_are_not_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "f", "2.1")
    with pytest.raises(UnsupportedError, match="in blocks of 128, and not of 256"):
        TextBuilder(folder, Reader(TextParameters(block_size=256)))
