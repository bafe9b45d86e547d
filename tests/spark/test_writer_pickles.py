"""What a write of Spark sends to its tasks does not grow with the table, and its commit is as good as without."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StringType, StructType

import pennon
from pennon.errors import IncompatibleConflict
from pennon.spark.source.options import parse_write_options
from pennon.spark.source.stream_sink import stream_writer
from pennon.spark.source.writer_plan import plan_writer

SCHEMA = StructType().add("id", LongType()).add("k", StringType())
ROWS = pa.record_batch({"id": pa.array([3, 100]), "k": ["new", "new"]})
KINDS: dict[str, dict[str, str]] = {
    "append": {},
    "overwrite": {"mode": "overwrite"},
    "condition": {"mode": "overwrite", "replaceWhere": "k = 'new' OR id >= 100"},
    "keys": {"mode": "overwrite", "overwrite_by": "id"},
    "stream append": {"stream": "yes"},
    "stream complete": {"stream": "yes", "mode": "overwrite"},
    "stream upsert": {"stream": "yes", "mergeOn": "id"},
}


def table_of(uri: Path, fragments: int) -> None:
    """Make a table of fragments of two rows, with an index; its newest version is an append of no rows."""
    rows = pa.table({"id": range(2 * fragments), "k": ["old"] * (2 * fragments)})
    dataset = pennon.write_dataset(rows, uri, max_rows_per_file=2)
    dataset.create_scalar_index("id", "BTREE")
    pennon.write_dataset(rows.slice(0, 0), uri, mode="append")


def writer_of(uri: Path, kind: str) -> Any:
    options = {"path": str(uri), **KINDS[kind]}
    overwrite = options.pop("mode", "append") == "overwrite"
    if options.pop("stream", ""):
        given = {**options, "checkpointLocation": str(uri.parent / "checkpoint")}
        return stream_writer(given, SCHEMA, overwrite=overwrite)
    return plan_writer(parse_write_options(options), SCHEMA, overwrite=overwrite)


@pytest.mark.parametrize("kind", KINDS)
def test_pickled_writer_does_not_grow_with_the_fragments(tmp_path: Path, kind: str) -> None:
    sizes = []
    for fragments in (1, 300):
        table_of(tmp_path / f"{fragments}.lance", fragments)
        sizes.append(len(cloudpickle.dumps(writer_of(tmp_path / f"{fragments}.lance", kind))))
    assert sizes[1] < sizes[0] + 100


@pytest.mark.parametrize("kind", [each for each in KINDS if not each.startswith("stream")])
def test_pickled_writer_commits_as_the_writer_itself(tmp_path: Path, kind: str) -> None:
    found = []
    for name in ("itself", "pickled"):
        uri = tmp_path / f"{name}.lance"
        table_of(uri, 5)
        writer = writer_of(uri, kind)
        pennon.write_dataset(pa.table({"id": [50], "k": ["meanwhile"]}), uri, mode="append")
        sent = pickle.loads(cloudpickle.dumps(writer)) if name == "pickled" else writer
        rows = ROWS.slice(1) if kind == "condition" else ROWS
        sent.commit([sent.write(iter([rows]))])
        made = pennon.dataset(uri)
        made.validate()
        found.append((made.version, made.to_table().sort_by("id").to_pydict()))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["append", "condition", "keys"])
def test_pickled_writer_refuses_a_table_that_was_made_anew(tmp_path: Path, kind: str) -> None:
    uri = tmp_path / "t.lance"
    table_of(uri, 5)
    sent = pickle.loads(cloudpickle.dumps(writer_of(uri, kind)))
    shutil.rmtree(uri)
    table_of(uri, 5)
    message = sent.write(iter([ROWS.slice(1)]))
    with pytest.raises(IncompatibleConflict, match="dropped and made anew"):
        sent.commit([message])
    assert pennon.dataset(uri).count_rows() == 10
