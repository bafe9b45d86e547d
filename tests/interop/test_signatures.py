"""Functions and methods have the parameter names of pylance."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.commit import CommitConflictError as LanceCommitConflictError

import pennon
from pennon.blob import BlobFile
from pennon.commit import CommitConflictError
from pennon.compat.arguments import refuse
from pennon.errors import IncompatibleConflict, RetryableConflict, UnsupportedError
from pennon.fragment import RowDatasetVersionMeta, RowIdMeta, RowIdSequence
from pennon.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult

MODULES = """
lance lance.fragment lance.dataset lance.optimize lance.file lance.blob lance.commit lance.progress
lance.udf lance.schema lance.indices
"""
MADE_BY_OTHERS = {
    "LanceScanner",
    "FragmentSession",
    "DatasetDelta",
    "SqlQuery",
    "SqlQueryBuilder",
    "LanceStats",
}
"""Classes whose objects come from methods: what their constructors take is nobody's business."""
REFUSED = {"LanceDataset.join", "LanceDataset.join_asof", "LanceDataset.sort_by", "Bitmap.update"}


def named(function: Callable[..., Any]) -> set[str]:
    """Return the names of what a function takes by name."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # some of Rust's have none
        return set()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {each.name for each in found if each.kind in by_name} - {"self", "cls"}


def takes_any(function: Callable[..., Any]) -> bool:
    if getattr(function, "__objclass__", None) is set:  # which Bitmap derives from
        return True
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of another built-in class that ours derives from
        return True
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)


def members(theirs: Any, ours: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield what both have in a function, or a class and its methods."""
    if not inspect.isclass(theirs):
        if callable(theirs):
            yield name, theirs, ours
        return
    if name not in MADE_BY_OTHERS:
        yield name, theirs, ours
    for part in dir(theirs):
        if not part.startswith("_") and callable(getattr(ours, part, None)):
            yield from members(getattr(theirs, part), getattr(ours, part), f"{name}.{part}")


def shared() -> Iterator[tuple[str, Any, Any]]:
    """Yield the functions, classes and methods that both libraries have."""
    for module in MODULES.split():
        theirs = importlib.import_module(module)
        ours = importlib.import_module(module.replace("lance", "pennon"))
        for name, each in vars(theirs).items():
            origin = getattr(each, "__module__", None) or ""
            is_api = origin.startswith("lance") or origin == "builtins"
            if is_api and not name.startswith("_") and hasattr(ours, name):
                yield from members(each, getattr(ours, name), name)


def test_signatures_have_the_parameter_names_of_pylance() -> None:
    wrong, seen = [], 0
    for name, theirs, ours in shared():
        seen += 1
        missing = set() if name in REFUSED else named(theirs) - named(ours)
        if missing and not takes_any(ours):
            wrong.append(f"{name}: {sorted(missing)}")
    assert not wrong
    assert seen > 300


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lance.dataset, pennon.dataset),
        (lance.write_dataset, pennon.write_dataset),
        (lance.LanceDataset.__init__, pennon.LanceDataset.__init__),
        (lance.LanceDataset.commit, pennon.LanceDataset.commit),
        (lance.LanceDataset.commit_batch, pennon.LanceDataset.commit_batch),
        (lance.LanceFragment.create, pennon.LanceFragment.create),
        (lance.fragment.write_fragments, pennon.fragment.write_fragments),
        (lance.file.LanceFileReader.__init__, pennon.file.LanceFileReader.__init__),
        (lance.file.LanceFileWriter.__init__, pennon.file.LanceFileWriter.__init__),
    ],
)
def test_unsupported_options_of_pylance_are_named_in_errors(theirs: Any, ours: Any) -> None:
    by_options = {"namespace_client", "table_id"}  # read from the options, where they name a table
    for name in named(theirs) - named(ours) - by_options:
        with pytest.raises(UnsupportedError, match=f"'{name}' is not supported yet"):
            refuse({name: "set"}, ours)


def test_keyword_names_of_pylance_are_accepted() -> None:
    made = pennon.write_dataset(rows := pa.table({"id": [1, 2]}), "memory://signatures")
    ids = RowIdSequence(row_ids=[3, 1])
    meta = ids.to_inline_metadata()
    assert RowIdMeta.from_json(json=meta.json()) == meta
    assert RowIdMeta.from_dict(dict=meta.asdict()) == meta
    version = RowDatasetVersionMeta(b"\x01")
    assert RowDatasetVersionMeta.from_json(json=version.json()) == version
    assert "MergeInsert" in made.merge_insert("id").when_not_matched_insert_all().analyze_plan(
        data_obj=rows
    )
    plan = Compaction.plan(made, {})
    assert CompactionPlan.from_json(json=plan.json()) == plan
    assert named(CompactionTask.from_json) == named(RewriteResult.from_json) == {"json"}
    assert "b" in named(BlobFile.readinto)


def test_conflict_errors_have_retryable_flag() -> None:
    for error in (CommitConflictError, LanceCommitConflictError):
        assert error("taken").retryable
        assert not error("taken", retryable=False).retryable
    assert RetryableConflict("x").retryable
    assert not IncompatibleConflict("x").retryable
