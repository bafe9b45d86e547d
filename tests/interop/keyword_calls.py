"""A call of each method that pylance has, with the arguments that have no default; see test_all_keywords."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pydantic

import pennon
import pennon.file
import pennon.indices
import pennon.optimize
import pennon.query
from pennon.compat.not_implemented import DATASET

THEIRS: Any = sys.modules["lance.dataset"]
"""The module: pylance has a function of that name in its place."""
ROWS = 600
LIST_ELEMENT = pennon.query.DocumentGranularity.LIST_ELEMENT
NEW = pa.table({"id": [1, ROWS + 1], "s": ["new", "new"]})
LATER = {
    *(f"LanceDataset.{name}" for name in DATASET.split()),
    # of pyarrow, or refused by name
    "LanceDataset.join_asof",
    "LanceScanner.__init__",
    "LanceFragment.__init__",
}


class Row(pydantic.BaseModel):
    """A row of a model's table."""

    id: int
    s: str


class Calls:
    """A table, and for each method what it is called with beside its defaults."""

    def __init__(self, folder: Path) -> None:
        self.uri = str(folder / "t.lance")
        self.folder = folder
        numbers = np.random.default_rng(1).normal(size=(ROWS, 4)).astype("float32")
        rows = pa.table(
            {
                "id": range(ROWS),
                "s": [f"word{n % 7}" for n in range(ROWS)],
                "vec": pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 4),
            }
        )
        self.table = pennon.write_dataset(rows, self.uri, max_rows_per_file=200)
        self.vector = [0.0] * 4

    def plain(self) -> pennon.LanceDataset:
        """A table of numbers and texts alone."""
        return pennon.write_dataset(
            self.table.to_table(columns=["id", "s"]), self.uri + ".plain", mode="overwrite"
        )

    def blobs(self) -> pennon.LanceDataset:
        blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        rows = pa.table([pa.array([b"x", b"y"], pa.large_binary())], pa.schema([blob]))
        return pennon.write_dataset(rows, self.uri + ".blobs")

    def fragment(self) -> Any:
        return self.plain().get_fragments()[0]

    def trained(self) -> dict[str, Any]:
        ivf = self.builder().train_ivf(2, sample_rate=2)
        return {"ivf": ivf, "pq": self.builder().train_pq(ivf, 2, sample_rate=2)}

    def builder(self) -> Any:
        return pennon.indices.IndicesBuilder(self.table, "vec")

    def merge(self) -> Any:
        return (
            self.plain().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        )

    def transformed(self) -> str:
        found = self.trained()
        self.builder().transform_vectors(found["ivf"], found["pq"], str(self.folder / "codes"))
        return "codes"


def calls(given: Calls) -> dict[str, Callable[[], tuple[Any, dict[str, Any]]]]:
    """The methods that are called, with their arguments that have no default."""
    uri, table = given.uri, given.table
    name = str(given.folder / "other.lance")
    return {
        "LanceDataset.__init__": lambda: (pennon.LanceDataset, {"uri": uri}),
        "LanceDataset.add_bases": lambda: (
            table.add_bases,
            {"new_bases": [pennon.DatasetBasePath(name, "base")]},
        ),
        "LanceDataset.add_columns": lambda: (
            table.add_columns,
            {"transforms": {"twice": "id * 2"}},
        ),
        "LanceDataset.centroids": lambda: (indexed(given).centroids, {"column": "vec"}),
        "LanceDataset.cleanup_old_versions": lambda: (table.cleanup_old_versions, {}),
        "LanceDataset.commit": lambda: (
            pennon.LanceDataset.commit,
            {
                "base_uri": uri,
                "operation": pennon.LanceOperation.Delete([], [], "false"),
                "read_version": 1,
            },
        ),
        "LanceDataset.commit_batch": lambda: (
            pennon.LanceDataset.commit_batch,
            {
                "dest": table,
                "transactions": [pennon.Transaction(1, pennon.LanceOperation.Append([]))],
            },
        ),
        "LanceDataset.count_rows": lambda: (table.count_rows, {}),
        "LanceDataset.create_branch": lambda: (table.create_branch, {"branch": "side"}),
        "LanceDataset.create_index": lambda: (
            table.create_index,
            {"column": "vec", "index_type": "IVF_FLAT"},
        ),
        "LanceDataset.create_index_uncommitted": lambda: (
            table.create_index_uncommitted,
            {"column": "id", "index_type": "BTREE", "fragment_ids": [0]},
        ),
        "LanceDataset.create_scalar_index": lambda: (
            table.create_scalar_index,
            {"column": "id", "index_type": "BTREE"},
        ),
        "LanceDataset.deep_clone": lambda: (
            table.deep_clone,
            {"target_path": name, "reference": 1},
        ),
        "LanceDataset.delete": lambda: (table.delete, {"predicate": "id = 3"}),
        "LanceDataset.delta": lambda: (table.delta, {"compared_against": 1}),
        "LanceDataset.drop": lambda: (pennon.LanceDataset.drop, {"base_uri": uri}),
        "LanceDataset.explain_cleanup_old_versions": lambda: (
            table.explain_cleanup_old_versions,
            {},
        ),
        "LanceDataset.join": lambda: (
            given.plain().join,
            {"right_dataset": pa.dataset.dataset(pa.table({"id": [1], "n": [2]})), "keys": "id"},
        ),
        "LanceDataset.from_pydantic_model": lambda: (
            pennon.LanceDataset.from_pydantic_model,
            {"model_class": Row, "data": [Row(id=1, s="one")], "uri": uri + ".models"},
        ),
        "LanceDataset.get_fragments": lambda: (table.get_fragments, {}),
        "LanceDataset.get_transactions": lambda: (table.get_transactions, {}),
        "LanceDataset.insert": lambda: (given.plain().insert, {"data": NEW}),
        "LanceDataset.merge": lambda: (
            given.plain().merge,
            {"data_obj": pa.table({"k": [1], "n": [2]}), "left_on": "id", "right_on": "k"},
        ),
        "LanceDataset.merge_index_metadata": lambda: (
            with_parts(given),
            {"index_uuid": UUID, "index_type": "INVERTED"},
        ),
        "LanceDataset.merge_insert": lambda: (table.merge_insert, {"on": "id"}),
        "LanceDataset.prewarm_index": lambda: (indexed(given).prewarm_index, {"name": "vec_idx"}),
        "LanceDataset.read_blob_ranges": lambda: (
            given.blobs().read_blob_ranges,
            {"blob_column": "b", "requests": [(0, 0, 1)], "selector": "indices"},
        ),
        "LanceDataset.read_blobs": lambda: (
            given.blobs().read_blobs,
            {"blob_column": "b", "indices": [0]},
        ),
        "LanceDataset.sample": lambda: (table.sample, {"num_rows": 2}),
        "LanceDataset.scanner": lambda: (table.scanner, {}),
        "LanceDataset.shallow_clone": lambda: (
            table.shallow_clone,
            {"target_path": name, "reference": 1},
        ),
        "LanceDataset.slice": lambda: (table.slice, {"start": 0, "end": 2}),
        "LanceDataset.take": lambda: (table.take, {"indices": [0]}),
        "LanceDataset.take_blobs": lambda: (
            given.blobs().take_blobs,
            {"blob_column": "b", "indices": [0]},
        ),
        "LanceDataset.to_batches": lambda: (lambda **k: list(table.to_batches(**k)), {}),
        "LanceDataset.to_pandas": lambda: (table.to_pandas, {}),
        "LanceDataset.to_table": lambda: (table.to_table, {}),
        "LanceDataset.tracked_files": lambda: (table.tracked_files, {}),
        "LanceDataset.update": lambda: (table.update, {"updates": {"s": "'x'"}}),
        "LanceDataset.update_config": lambda: (table.update_config, {"values": {"a": "b"}}),
        "LanceDataset.update_field_metadata": lambda: (
            table.update_field_metadata,
            {"field_updates": {"id": {"a": "b"}}},
        ),
        "LanceDataset.update_metadata": lambda: (table.update_metadata, {"values": {"a": "b"}}),
        "LanceDataset.update_schema_metadata": lambda: (
            table.update_schema_metadata,
            {"values": {"a": "b"}},
        ),
        "LanceFragment.count_rows": lambda: (given.fragment().count_rows, {}),
        "LanceFragment.create": lambda: (
            pennon.LanceFragment.create,
            {"dataset_uri": name, "data": NEW},
        ),
        "LanceFragment.merge": lambda: (
            given.fragment().merge,
            {"data_obj": pa.table({"k": [1], "n": [2]}), "left_on": "id", "right_on": "k"},
        ),
        "LanceFragment.merge_columns": lambda: (
            given.fragment().merge_columns,
            {"value_func": {"twice": "id * 2"}},
        ),
        "LanceFragment.open_session": lambda: (given.fragment().open_session, {}),
        "LanceFragment.scanner": lambda: (given.fragment().scanner, {}),
        "LanceFragment.take": lambda: (given.fragment().take, {"indices": [0]}),
        "LanceFragment.to_batches": lambda: (
            lambda **k: list(given.fragment().to_batches(**k)),
            {},
        ),
        "LanceFragment.to_pandas": lambda: (given.fragment().to_pandas, {}),
        "LanceFragment.to_table": lambda: (given.fragment().to_table, {}),
        "LanceFragment.update_columns": lambda: (
            given.fragment().update_columns,
            {"data_obj": pa.table({"id": [1], "s": ["new"]}), "left_on": "id"},
        ),
        **{
            f"ScannerBuilder.{method}": partial(method_of, table, method)
            for method in (
                "batch_readahead",
                "columns",
                "disable_scoring_autoprojection",
                "fragment_readahead",
                "limit",
                "offset",
                "row_addr_prefilter",
                "scan_in_order",
                "strict_batch_size",
                "use_scalar_index",
                "use_stats",
                "with_row_address",
                "with_row_id",
            )
        },
        "ScannerBuilder.full_text_search": lambda: (
            builder_of(table).full_text_search,
            {"query": "word1"},
        ),
        "ScannerBuilder.nearest": lambda: (
            builder_of(table).nearest,
            {"column": "vec", "q": given.vector},
        ),
        "LanceScanner.analyze_plan": lambda: (table.scanner().analyze_plan, {}),
        "LanceScanner.explain_plan": lambda: (table.scanner().explain_plan, {}),
        "LanceScanner.to_pandas": lambda: (table.scanner().to_pandas, {}),
        "MergeInsertBuilder.analyze_plan": lambda: (given.merge().analyze_plan, {"data_obj": NEW}),
        "MergeInsertBuilder.execute": lambda: (given.merge().execute, {"data_obj": NEW}),
        "MergeInsertBuilder.execute_uncommitted": lambda: (
            given.merge().execute_uncommitted,
            {"data_obj": NEW},
        ),
        "MergeInsertBuilder.explain_plan": lambda: (given.merge().explain_plan, {}),
        "MergeInsertBuilder.target_all_bases": lambda: (given.merge().target_all_bases, {}),
        "MergeInsertBuilder.when_matched_update_all": lambda: (
            given.merge().when_matched_update_all,
            {},
        ),
        "MergeInsertBuilder.when_not_matched_by_source_delete": lambda: (
            given.merge().when_not_matched_by_source_delete,
            {},
        ),
        "DatasetOptimizer.compact_files": lambda: (table.optimize.compact_files, {}),
        "Tags.create": lambda: (table.tags.create, {"tag": "one"}),
        "Tags.list_ordered": lambda: (table.tags.list_ordered, {}),
        "Tags.update": lambda: (tagged(table).tags.update, {"tag": "one"}),
        "Branches.list_ordered": lambda: (table.branches.list_ordered, {}),
        "IndicesBuilder.assign_ivf_partitions": lambda: (
            given.builder().assign_ivf_partitions,
            {"ivf_model": given.builder().train_ivf(1), "accelerator": "cpu"},
        ),
        "IndicesBuilder.prepare_global_ivf_pq": lambda: (
            given.builder().prepare_global_ivf_pq,
            {"num_partitions": 2, "num_subvectors": 2, "sample_rate": 2},
        ),
        "IndicesBuilder.train_ivf": lambda: (given.builder().train_ivf, {"num_partitions": 1}),
        "IndicesBuilder.train_pq": lambda: (
            given.builder().train_pq,
            {
                "ivf_model": given.trained()["ivf"],
                "sample_rate": 2,
                "num_subvectors": 2,
                "num_bits": 4,
            },
        ),
        "IndicesBuilder.transform_vectors": lambda: (
            given.builder().transform_vectors,
            {**given.trained(), "dest_uri": str(given.folder / "coded.lance")},
        ),
        "IndicesBuilder.shuffle_transformed_vectors": lambda: (
            given.builder().shuffle_transformed_vectors,
            {
                "unsorted_filenames": [given.transformed()],
                "dir_path": str(given.folder),
                "ivf": given.trained()["ivf"],
            },
        ),
        "IndicesBuilder.load_shuffled_vectors": lambda: (
            given.builder().load_shuffled_vectors,
            {"filenames": shuffled(given), "dir_path": str(given.folder), **given.trained()},
        ),
        "Compaction.commit": lambda: (
            pennon.optimize.Compaction.commit,
            {"dataset": table, "rewrites": []},
        ),
        "LanceFileReader.__init__": lambda: (
            pennon.file.LanceFileReader,
            {"path": data_file(given)},
        ),
        "LanceFileReader.read_all": lambda: (
            pennon.file.LanceFileReader(data_file(given)).read_all,
            {},
        ),
        "LanceFileReader.read_range": lambda: (
            pennon.file.LanceFileReader(data_file(given)).read_range,
            {"start": 0, "num_rows": 2},
        ),
        "LanceFileReader.take_rows": lambda: (
            pennon.file.LanceFileReader(data_file(given)).take_rows,
            {"indices": [0]},
        ),
        "LanceFileWriter.__init__": lambda: (
            pennon.file.LanceFileWriter,
            {"path": str(given.folder / "x.lance"), "schema": NEW.schema},
        ),
        "lance.dataset": lambda: (pennon.dataset, {"uri": uri}),
        "lance.write_dataset": lambda: (pennon.write_dataset, {"data_obj": NEW, "uri": name}),
        "lance.write_fragments": lambda: (
            pennon.fragment.write_fragments,
            {"data": NEW, "dataset_uri": name},
        ),
        "lance.blob_field": lambda: (pennon.blob_field, {"name": "b"}),
    }


UUID = "7f3b5e52-2b0b-4c5a-9d2e-0123456789ab"


def indexed(given: Calls) -> Any:
    return given.table.create_index("vec", "IVF_FLAT", num_partitions=2)


def with_parts(given: Calls) -> Any:
    for each in given.table.get_fragments():
        given.table.create_scalar_index(
            "s", "INVERTED", fragment_ids=[each.fragment_id], index_uuid=UUID
        )
    return given.table.merge_index_metadata


def method_of(table: Any, method: str) -> tuple[Any, dict[str, Any]]:
    return getattr(builder_of(table), method), {}


def builder_of(table: Any) -> Any:
    from pennon.dataset.scanner_builder import ScannerBuilder

    return ScannerBuilder(table)


def tagged(table: Any) -> Any:
    table.tags.create("one")
    return table


def shuffled(given: Calls) -> list[str]:
    found = given.trained()
    return given.builder().shuffle_transformed_vectors(
        [given.transformed()], str(given.folder), found["ivf"]
    )


def data_file(given: Calls) -> str:
    return str(Path(given.uri) / "data" / given.table.get_fragments()[0].data_files()[0].path)
