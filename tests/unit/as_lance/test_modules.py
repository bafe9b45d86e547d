"""The modules that only programs of pylance's need: native names, traces, caches, packages that may be absent."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pydantic
import pytest

import pennon
from pennon.as_lance import dependencies, native
from pennon.as_lance.cache import CachedDataset
from pennon.as_lance.hf import HuggingFaceConverter
from pennon.as_lance.sharded_batches import ShardedBatchIterator
from pennon.as_lance.tracing import (
    TraceEvent,
    capture_trace_events,
    shutdown_tracing,
    trace_to_chrome,
)
from pennon.as_lance.types import _coerce_reader, _is_materialized
from pennon.errors import ArgumentError, UnsupportedError
from pennon.log import LOGGER

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def info_level() -> Iterator[None]:
    """Let messages of level INFO pass, and end traces afterwards."""
    before = LOGGER.level
    LOGGER.setLevel(logging.INFO)
    yield
    shutdown_tracing()
    LOGGER.setLevel(before)


def test_native_names_are_the_classes_of_pennon() -> None:
    assert native.CompactionMetrics is pennon.optimize.CompactionMetrics
    assert native.LanceBlobFile is pennon.BlobFile
    assert native.RowIdSequence is pennon.fragment.RowIdSequence
    assert "bfloat16_array" in dir(native)
    schema = pa.schema([("id", pa.int64())])
    assert native._json_to_schema(native._schema_to_json(schema)) == schema
    with pytest.raises(AttributeError, match=r"'lance\.lance' has no attribute 'NoSuchName'"):
        native.NoSuchName  # noqa: B018


def test_native_migration_is_needed_without_row_counts(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    assert native.manifest_needs_migration(table) is False


def test_trace_events_are_the_messages_of_loggers(info_level: None) -> None:
    events: list[TraceEvent] = []
    capture_trace_events(events.append)
    pennon.write_dataset(ROWS, "memory://trace/t.lance")
    assert [each.target for each in events] == ["pennon.commit"]
    assert events[0].args["message"].endswith("version 1 committed (Overwrite)")
    assert events[0].args["client_version"] == "14.0.2"
    shutdown_tracing()
    pennon.write_dataset(ROWS, "memory://trace/t.lance", mode="append")
    assert len(events) == 1


def test_trace_file_for_chrome_is_json(
    info_level: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace_to_chrome(file="mine.json")
    trace_to_chrome()
    for number in range(2):
        pennon.write_dataset(ROWS, f"memory://chrome{number}/t.lance")
    shutdown_tracing()
    files = sorted(tmp_path.glob("*.json"))
    assert [file.name[:6] for file in files] == ["mine.j", "trace-"]
    for file in files:
        found = json.loads(file.read_text())
        assert [each["cat"] for each in found] == ["pennon.commit"] * 2


def test_cached_stream_is_read_again_from_a_file_that_close_deletes(tmp_path: Path) -> None:
    batches = CachedDataset(iter(ROWS.to_batches(max_chunksize=2)), tmp_path)
    first = list(batches)
    assert list(batches) == first == ROWS.to_batches(max_chunksize=2)
    assert len(list(tmp_path.rglob("*.arrow"))) == 1
    batches.close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ArgumentError, match="closed"):
        iter(batches)


def test_cached_stream_is_not_read_twice_at_once(tmp_path: Path) -> None:
    with CachedDataset(iter(ROWS.to_batches(max_chunksize=1)), str(tmp_path)) as batches:
        next(iter(batches))
        with pytest.raises(ArgumentError, match="has not ended"):
            iter(batches)
    assert list(CachedDataset(iter([]))) == []
    with pytest.raises(ArgumentError, match="a folder or True"):
        CachedDataset(iter([]), cache=False)


def test_dependencies_know_objects_of_packages_by_their_classes() -> None:
    class Frame(pd.DataFrame):
        pass

    assert dependencies._check_for_pandas(Frame())
    assert dependencies._check_for_numpy(np.float32(1))
    assert not dependencies._check_for_pandas({})
    assert dependencies._check_for_polars(pl.DataFrame, check_type=False)
    model = pydantic.create_model("Model", a=(int, ...))
    assert dependencies._is_pydantic_base_model(model(a=1))
    assert dependencies._is_pydantic_base_model_class(model)
    assert dependencies.model_to_dict(model(a=1)) == {"a": 1}
    with pytest.raises(TypeError, match="as a list"):
        dependencies._validate_pydantic_list((), model)


def test_dependency_that_is_absent_is_named_when_it_is_used() -> None:
    absent = dependencies._LazyModule("no_such_package")
    assert not hasattr(absent, "__wrapped__")
    with pytest.raises(ModuleNotFoundError, match="pip install no_such_package"):
        absent.name  # noqa: B018
    with pytest.raises(AttributeError):
        dependencies._LazyModule("json").no_such_function  # noqa: B018


def test_types_turn_data_into_readers() -> None:
    assert _coerce_reader({"id": [1, 2, 3]}).read_all() == ROWS
    data: tuple[object, ...] = (ROWS, ROWS.to_pandas(), {"id": [1]}, ROWS.to_reader(), iter([]))
    assert [_is_materialized(each) for each in data] == [True, True, True, False, False]


@pytest.mark.parametrize("granularity", ["fragment", "batch"])
def test_sharded_batches_of_ranks_are_all_rows_once(tmp_path: Path, granularity: str) -> None:
    rows = pa.table({"id": range(100)})
    table = pennon.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=25)
    found: list[int] = []
    for rank in range(2):
        with pytest.warns(DeprecationWarning, match="deprecated"):
            part = ShardedBatchIterator(table.uri, rank, 2, granularity=granularity, batch_size=10)  # type: ignore[arg-type]
        found += [number for batch in part for number in batch["id"].to_pylist()]
    assert sorted(found) == list(range(100))


@pytest.mark.filterwarnings("ignore:ShardedBatchIterator")
def test_sharded_batches_of_unknown_granularity_are_refused(tmp_path: Path) -> None:
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    with pytest.raises(ArgumentError, match="'fragment' or 'batch'"):
        ShardedBatchIterator(table, 0, 1, granularity="row")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="row ids"):
        ShardedBatchIterator(table, 0, 1, granularity="batch", with_row_id=True)


def test_hugging_face_features_without_decoder_are_refused() -> None:
    converter = HuggingFaceConverter({"info": {"features": {"a": {"_type": "Audio"}}}})
    assert converter.to_pytorch("other", pa.array([1])) is None
    with pytest.raises(UnsupportedError, match="Audio of the column 'a'"):
        converter.to_pytorch("a", pa.array([1]))
