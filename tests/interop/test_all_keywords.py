"""Every method takes all keywords that pylance's has, at pylance's defaults.

Libraries above pylance (lance-ray, Daft) spell out what they could leave out.  A method that pylance has and this
list has not fails the test: add its call here.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import lance
import lance.file
import lance.fragment
import lance.indices
import lance.optimize
import numpy as np
import pytest

from pennon.errors import ArgumentError, UnsupportedError
from tests.interop.keyword_calls import LATER, LIST_ELEMENT, ROWS, THEIRS, Calls, calls

CLASSES: tuple[Any, ...] = (
    lance.LanceDataset,
    lance.fragment.LanceFragment,
    THEIRS.ScannerBuilder,
    lance.LanceScanner,
    lance.MergeInsertBuilder,
    THEIRS.DatasetOptimizer,
    THEIRS.Tags,
    THEIRS.Branches,
    lance.indices.IndicesBuilder,
    lance.optimize.Compaction,
    lance.file.LanceFileReader,
    lance.file.LanceFileWriter,
)


def doors() -> dict[str, dict[str, Any]]:
    """All of pylance's methods and functions that have defaults, and these."""
    found = {}
    for owner in CLASSES:
        for name in dir(owner):
            method = getattr(owner, name)
            is_method = callable(method) and not isinstance(
                inspect.getattr_static(owner, name), property
            )
            if is_method and (name == "__init__" or not name.startswith("_")):
                found[f"{owner.__name__}.{name}"] = method
    for function in (
        lance.dataset,
        lance.write_dataset,
        lance.fragment.write_fragments,
        lance.blob_field,
    ):
        found[f"lance.{function.__name__}"] = function
    return {
        name: chosen
        for name, each in found.items()
        if (chosen := defaults(each)) and name not in LATER
    }


def defaults(function: Any) -> dict[str, Any]:
    """The parameters that have a default, private ones aside."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return {}
    return {
        each.name: each.default
        for each in parameters
        if each.default is not each.empty and not each.name.startswith("_")
    }


DOORS = doors()


def test_keyword_calls_cover_every_method(tmp_path: Path) -> None:
    assert sorted(DOORS.keys() - calls(Calls(tmp_path)).keys()) == []
    assert sorted(calls(Calls(tmp_path / "b")).keys() - DOORS.keys()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("door", DOORS)
def test_a_method_takes_all_keywords_of_pylance(tmp_path: Path, door: str) -> None:
    function, given = calls(Calls(tmp_path))[door]()
    function(**{**DOORS[door], **given})


SEGMENTS = {
    "BTREE": "id",
    "BITMAP": "id",
    "ZONEMAP": "id",
    "BLOOMFILTER": "id",
    "NGRAM": "s",
    "INVERTED": "s",
    "IVF_FLAT": "vec",
}


@pytest.mark.parametrize("kind", SEGMENTS)
def test_index_segments_with_keywords_of_lance_ray_and_daft_are_built_and_committed(
    tmp_path: Path, kind: Any
) -> None:
    """With the keywords of a whole index, on each fragment; then all are committed."""
    table = Calls(tmp_path).table
    trained: dict[str, Any] = (
        {"metric": "L2", "num_partitions": 2, "ivf_centroids": np.eye(2, 4, dtype="float32")}
        if kind.startswith("IVF")
        else {}
    )
    segments = [
        table.create_index_uncommitted(
            column=[SEGMENTS[kind]],
            index_type=kind,
            name="found",
            replace=True,
            train=True,
            storage_options=None,
            fragment_ids=[each.fragment_id],
            **trained,
        )
        for each in table.get_fragments()
    ]
    table = table.commit_existing_index_segments("found", SEGMENTS[kind], segments)
    assert table.index_statistics("found")["num_indexed_rows"] == ROWS


def test_index_segment_with_options_of_a_whole_index_is_refused(tmp_path: Path) -> None:
    table = Calls(tmp_path).table
    with pytest.raises(UnsupportedError, match="train=False"):
        table.create_index_uncommitted("id", "BTREE", fragment_ids=[0], train=False)
    with pytest.raises(ArgumentError, match="num_partitions"):
        table.create_index_uncommitted("id", "BTREE", fragment_ids=[0], num_partitions=2)
    with pytest.raises(ArgumentError, match="document_granularity"):
        table.create_scalar_index("id", "BTREE", document_granularity=LIST_ELEMENT)
