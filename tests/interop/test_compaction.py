"""Compaction by either library: the same choice, the same result, each with the other's parts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import lance.optimize
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pennon
from pennon.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult

# The stubs of pylance lack what its classes have.
Theirs: Any = lance.optimize.Compaction
TheirPlan: Any = lance.optimize.CompactionPlan
TheirTask: Any = lance.optimize.CompactionTask
TheirResult: Any = lance.optimize.RewriteResult
VERSIONS = [("0.1", False), ("2.0", False), ("2.1", True), ("2.2", False), ("2.2", True)]
TARGET = {"target_rows_per_fragment": 25}


def rows(first: int, count: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.repeat(4), pa.float32()), 4)
    return pa.table(
        {
            "n": numbers,
            "s": [f"word{n % 7}" if n % 5 else None for n in numbers],
            "l": [list(range(n % 3)) for n in numbers],
            "v": vectors,
        }
    )


def table(path: Path, sizes: list[int], version: str, *, stable: bool) -> lance.LanceDataset:
    """Return a table whose fragments were written in turn by both."""
    first = 0
    for number, size in enumerate(sizes):
        write = (lance, pennon)[number % 2].write_dataset
        write(
            rows(first, size).drop_columns(["l", "v"] if version == "0.1" else []),
            str(path),
            mode="append" if first else "create",
            data_storage_version=version,
            enable_stable_row_ids=stable,
        )
        first += size
    return lance.dataset(path)


@pytest.mark.parametrize(("version", "stable"), VERSIONS)
def test_compaction_plans_tasks_and_results_interchange_with_pylance(
    tmp_path: Path, version: str, stable: bool
) -> None:
    theirs = table(tmp_path, [10, 20, 100, 10, 10, 10, 100, 5, 5], version, stable=stable)
    theirs.delete("n % 11 = 3")
    before = theirs.to_table(with_row_id=stable)
    ours = pennon.dataset(tmp_path)
    plan, other = Compaction.plan(ours, TARGET), Theirs.plan(theirs, TARGET)
    assert _plain(plan.json()) == _plain(other.json())
    assert CompactionPlan.from_json(other.json()) == plan
    assert TheirPlan.from_json(plan.json()).num_tasks() == 3
    results = [
        CompactionTask.from_json(other.tasks[0].json()).execute(ours),
        RewriteResult.from_json(TheirTask.from_json(plan.tasks[1].json()).execute(theirs).json()),
        plan.tasks[2].execute(ours),
    ]
    Compaction.commit(ours, results[:2])
    Theirs.commit(theirs, [TheirResult.from_json(results[2].json())])
    for dataset in (theirs, pennon.dataset(tmp_path)):
        dataset.validate()
        assert dataset.to_table(with_row_id=stable).sort_by("n") == before.sort_by("n")


def _plain(text: str) -> Any:
    """Return JSON without the one option that only an index gives a meaning."""
    found = json.loads(text)
    del found["options"]["has_eager_remappable_index"]
    return found


@pytest.mark.parametrize(("version", "stable"), VERSIONS)
def test_compaction_in_turn_with_pylance(tmp_path: Path, version: str, stable: bool) -> None:
    table(tmp_path, [10, 10], version, stable=stable)
    whole = rows(0, 20).drop_columns(["l", "v"] if version == "0.1" else [])
    for turn in range(4):
        first = len(whole)
        for library in (lance, pennon):
            new = rows(len(whole), 7).select(whole.column_names)
            library.write_dataset(new, str(tmp_path), mode="append")
            whole = pa.concat_tables([whole, new])
        (pennon, lance)[turn % 2].dataset(str(tmp_path)).delete(f"n = {first + 1}")
        whole = whole.filter(pa.compute.not_equal(whole["n"], first + 1))
        (lance, pennon)[turn % 2].dataset(str(tmp_path)).optimize.compact_files()
        for dataset in (lance.dataset(tmp_path), pennon.dataset(tmp_path)):
            assert len(dataset.get_fragments()) == 1
            assert dataset.to_table().equals(whole)


@settings(max_examples=8, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 10)), min_size=1, max_size=9),
    target=st.integers(1, 60),
    threshold=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0, 2.0]),
    materialize=st.booleans(),
    excluded=st.lists(st.integers(0, 12), max_size=2),
    bounds=st.fixed_dictionaries(
        {},
        optional={
            "max_source_fragments": st.integers(1, 8),
            "max_source_rows": st.integers(1, 100),
            "max_source_bytes": st.integers(1, 8000),
        },
    ),
)
def test_compaction_choice_equals_pylance(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[tuple[int, int]],
    target: int,
    threshold: float,
    materialize: bool,
    excluded: list[int],
    bounds: dict[str, int],
) -> None:
    path = tmp_path_factory.mktemp("chosen")
    dataset = _with_deletions(path, sizes)
    options: dict[str, Any] = {
        "target_rows_per_fragment": target,
        "materialize_deletions": materialize,
        "materialize_deletions_threshold": threshold,
        "excluded_fragment_ids": excluded,
        **bounds,
    }
    theirs = Theirs.plan(dataset, options)
    ours = Compaction.plan(pennon.dataset(path), options)
    assert [task.fragments for task in ours.tasks] == [
        CompactionTask.from_json(task.json()).fragments for task in theirs.tasks
    ]
    copy = pennon.dataset(shutil.copytree(path, path.with_name(path.name + "copy")))
    copy.optimize.compact_files(**options)
    dataset.optimize.compact_files(**options)
    assert copy.to_table() == dataset.to_table()
    counts = [[f.count_rows() for f in each.get_fragments()] for each in (copy, dataset)]
    assert counts[0] == counts[1]


def _with_deletions(path: Path, sizes: list[tuple[int, int]]) -> lance.LanceDataset:
    """Return a table of fragments of so many rows, of which so many, but not all, are deleted."""
    first = 0
    dead: list[int] = []
    for size, deleted in sizes:
        data = pa.table({"n": range(first, first + size)})
        pennon.write_dataset(data, path, mode="append" if first else "create")
        dead += range(first, first + min(deleted, size - 1))
        first += size
    dataset = lance.dataset(path)
    if dead:
        dataset.delete(f"n in ({', '.join(map(str, dead))})")
    return dataset


@pytest.mark.parametrize("stable", [False, True])
def test_compaction_keeps_answers_of_indices(tmp_path: Path, stable: bool) -> None:
    """Whatever an index goes by, queries through it find the rows that a scan finds."""
    dataset = table(tmp_path, [300] * 4, "2.1", stable=stable)
    dataset.create_scalar_index("n", "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    dataset.create_scalar_index("l", "LABEL_LIST")
    dataset.create_scalar_index("n", "ZONEMAP", name="zone")
    dataset.create_scalar_index("n", "BLOOMFILTER", name="bloom")
    dataset.create_scalar_index("s", "INVERTED", name="text")
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    lance.write_dataset(rows(1200, 50), tmp_path, mode="append")
    dataset = lance.dataset(tmp_path)
    dataset.delete("n % 10 = 3")
    before = _queries(dataset)
    pennon.dataset(tmp_path).optimize.compact_files(target_rows_per_fragment=500)
    compacted = lance.dataset(tmp_path)
    assert len(compacted.get_fragments()) == 3
    assert _queries(compacted) == before
    compacted.optimize.optimize_indices()
    assert _queries(compacted) == before


def _queries(dataset: lance.LanceDataset) -> dict[str, list[int]]:
    filters = ["n = 17", "n >= 0", "n > 500 and n < 700", "s = 'word3'", "array_has(l, 1)"]
    found = {text: dataset.to_table(filter=text) for text in filters}
    found["text"] = dataset.to_table(full_text_query="word3")
    nearest = {"column": "v", "q": [17.0] * 4, "k": 20, "nprobes": 2}
    found["nearest"] = dataset.to_table(nearest=nearest)
    return {name: sorted(each["n"].to_pylist()) for name, each in found.items()}
