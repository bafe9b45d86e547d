"""Batches that an application numbers: what pylance commits in between keeps the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import AlreadyCommittedError
from pennon.io import open_store
from pennon.ops.write import WriteMode, commit_write, plan_write, write_fragments
from pennon.table.transaction import AppVersion

ROWS = pa.table({"id": range(100), "x": range(100)})
FEW = pa.table({"id": [7, 777], "x": [1, 2]})


def commit(uri: str, app: AppVersion) -> Any:
    """Append a row as a batch of an application."""
    plan = plan_write(open_store(uri), ROWS.schema, WriteMode.APPEND)
    fragments = write_fragments(plan.task, iter(FEW.slice(0, 1).to_batches()))
    return commit_write(plan, fragments, app.properties())


def restore(ds: Any) -> None:
    lance.write_dataset(FEW, ds.uri, mode="append")
    ds.restore()


def drop(ds: Any) -> None:
    ds.add_columns({"y": "x + 1"})
    ds.drop_columns(["y"])


def merge(ds: Any) -> None:
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(FEW)


STEPS: dict[str, Callable[[Any], object]] = {
    "append": lambda ds: lance.write_dataset(FEW, ds.uri, mode="append"),
    "overwrite": lambda ds: lance.write_dataset(FEW, ds.uri, mode="overwrite"),
    "delete": lambda ds: ds.delete("id = 5"),
    "update": lambda ds: ds.update({"x": "x + 1"}, where="id < 4"),
    "merge": merge,
    "compact": lambda ds: ds.optimize.compact_files(),
    "index": lambda ds: ds.create_scalar_index("id", "BTREE"),
    "drop a column": drop,
    "config": lambda ds: ds.update_config({"a": "b"}),
    "restore": restore,
}


@pytest.mark.parametrize("step", STEPS)
def test_numbered_batch_is_known_after_commits_of_pylance(tmp_path: Any, step: str) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(ROWS, uri)
    commit(uri, AppVersion("loader", 3))
    STEPS[step](lance.dataset(uri))
    rows = pennon.dataset(uri).count_rows()
    for known in (3, 2, 0):
        with pytest.raises(AlreadyCommittedError, match="'loader' has committed its version 3"):
            commit(uri, AppVersion("loader", known))
    assert pennon.dataset(uri).count_rows() == rows
    commit(uri, AppVersion("loader", 4))
    commit(uri, AppVersion("another", 0))
    assert lance.dataset(uri).count_rows() == rows + 2


@pytest.mark.parametrize(("app", "version"), [("", 1), ("a", -1), ("a", 2**63)])
def test_numbered_batch_refuses_a_name_or_number_that_makes_no_sense(
    app: str, version: int
) -> None:
    with pytest.raises(ValueError, match="application"):
        AppVersion(app, version)
