"""An index committed beside another change, by either library and in either order, gives right answers.

Both plan on one version; one commits, then the other.  Whatever came of it, both libraries give with the index the
rows that a scan gives, and the index covers what it should.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import IncompatibleConflict, RetryableConflict

LIBS: dict[str, ModuleType] = {"Pennon": pennon, "pylance": lance}
Change = Callable[[ModuleType, Any, str], object]
"""Changes a table through a handle of a library that stands at the version both read."""
CONDITIONS = ("i = 7", "i BETWEEN 10 AND 30", "i IN (3, 15, 1000)", "i IS NULL", "NOT (i < 35)")


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    values = [None if n % 11 == 5 else n for n in numbers]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "i": pa.array(values, pa.int64()),
            "o": pa.array(numbers, pa.int64()),
        }
    )


def _append(lib: ModuleType, _: Any, uri: str) -> object:
    return lib.write_dataset(rows(40, 10), uri, mode="append")


def _overwrite(lib: ModuleType, handle: Any, _: str) -> object:
    return lib.write_dataset(rows(0, 15), handle, mode="overwrite")


def _change_column(column: str) -> Change:
    """Write a column anew where it lies, in fragment 1; pylance moves the rows of a whole fragment instead."""

    def change(lib: ModuleType, handle: Any, uri: str) -> object:
        data = pa.table({"id": pa.array(range(10, 20), pa.int64()), column: pa.array([1000] * 10)})
        if lib is pennon:
            builder = handle.merge_insert("id").when_matched_update_all()
            return builder.write_mode("rewrite_columns").execute(data)
        return handle.merge_insert("id").when_matched_update_all().execute(data)

    return change


def _compact(lib: ModuleType, handle: Any, _: str) -> object:
    return handle.optimize.compact_files()


def _compact_deferred(lib: ModuleType, handle: Any, _: str) -> object:
    return handle.optimize.compact_files(defer_index_remap=True)


def _restore(lib: ModuleType, handle: Any, uri: str) -> object:
    return lib.dataset(uri, version=1).restore()


CHANGES: dict[str, Change] = {
    "append": _append,
    "delete": lambda lib, handle, uri: handle.delete("id % 4 = 3"),
    "delete a fragment": lambda lib, handle, uri: handle.delete("id >= 10 AND id < 20"),
    "update": lambda lib, handle, uri: handle.update({"i": "1000"}, where="id % 6 = 1"),
    "update another": lambda lib, handle, uri: handle.update({"o": "1"}, where="id % 6 = 1"),
    "write it anew": _change_column("i"),
    "write another anew": _change_column("o"),
    "compact": _compact,
    "compact deferred": _compact_deferred,
    "add a column": lambda lib, handle, uri: handle.add_columns({"p": "o + 1"}),
    "drop it": lambda lib, handle, uri: handle.drop_columns(["i"]),
    "drop another": lambda lib, handle, uri: handle.drop_columns(["o"]),
    "same name": lambda lib, handle, uri: commit_index(lib, handle, make(uri, "BITMAP", "x")),
    "another name": lambda lib, handle, uri: commit_index(lib, handle, make(uri, "BITMAP", "y")),
    "overwrite": _overwrite,
    "restore": _restore,
    "config": lambda lib, handle, uri: handle.update_config({"k": "v"}),
}


def make(uri: str, kind: str, name: str) -> Any:
    """Make an index of all fragments of the version that both read; nobody commits it yet."""
    there = lance.dataset(uri, version=2)
    ids = [fragment.fragment_id for fragment in there.get_fragments()]
    return there.create_index_uncommitted("i", kind, name=name, fragment_ids=ids)


def commit_index(lib: ModuleType, handle: Any, made: Any) -> object:
    """Commit an index as made on the version of a handle."""
    if lib is lance:
        operation = lance.LanceOperation.CreateIndex([made], [])
        return lance.LanceDataset.commit(handle.uri, operation, read_version=handle.version)
    index = pennon.Index(
        uuid=made.uuid,
        name=made.name,
        fields=list(made.fields),
        dataset_version=made.dataset_version,
        fragment_ids=set(made.fragment_ids),
        index_version=made.index_version,
        created_at=made.created_at,
        index_details=made.index_details,
    )
    mine = pennon.LanceOperation.CreateIndex([index], [])
    return pennon.LanceDataset.commit(handle, mine, read_version=handle.version)


def outcome(commit: Callable[[], object]) -> str:
    """Commit; return ``.`` if that went well, ``r`` or ``X`` for a conflict."""
    try:
        commit()
    except RetryableConflict:
        return "r"
    except IncompatibleConflict:
        return "X"
    except (OSError, RuntimeError, ValueError) as error:
        text = str(error)
        if "etryable" in text:
            return "r"
        if "onflict" in text or "ncompatible" in text:
            return "X"
        raise
    return "."


INDEX_SECOND: dict[str, str] = {
    "append": "..",
    "delete": "..",
    "delete a fragment": "..",
    "update": "..",
    "update another": "..",
    "write it anew": "r.",
    "write another anew": "..",
    "compact": "rr",
    "compact deferred": "..",
    "add a column": "..",
    "drop it": "r.",
    "drop another": "..",
    "same name": "rr",
    "another name": "..",
    "overwrite": "XX",
    "restore": "XX",
    "config": "..",
}
"""What becomes of the index that comes second: where Pennon commits it, and where pylance 14.0.2 does, measured."""
INDEX_FIRST: dict[str, str] = {
    **dict.fromkeys(CHANGES, ".."),
    "compact": "rr",
    "same name": "rr",
}
"""What becomes of the other change that comes second."""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "t.lance")
    lance.write_dataset(rows(0, 40), place, max_rows_per_file=10)
    lance.dataset(place).create_scalar_index("o", "BTREE", name="other")
    return place


def check(uri: str) -> None:
    """Check that no index changes an answer, in either library."""
    for dataset in (pennon.dataset(uri), lance.dataset(uri)):
        dataset.validate()
        for condition in CONDITIONS if "i" in dataset.schema.names else ():
            found, plain = (
                dataset.scanner(["id"], condition, use_scalar_index=uses)
                .to_table()["id"]
                .to_pylist()
                for uses in (True, False)
            )
            assert sorted(found) == sorted(plain), condition


@pytest.mark.parametrize("of_the_change", LIBS)
@pytest.mark.parametrize("of_the_index", LIBS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("first", ["index", "change"])
def test_index_and_concurrent_change_answer_right(
    uri: str, first: str, change: str, of_the_index: str, of_the_change: str
) -> None:
    made = make(uri, "BTREE", "x")
    theirs, mine = LIBS[of_the_change], LIBS[of_the_index]
    handles = [lib.dataset(uri) for lib in (mine, theirs)]
    steps: list[Callable[[], object]] = [
        lambda: commit_index(mine, handles[0], made),
        lambda: CHANGES[change](theirs, handles[1], uri),
    ]
    if first == "change":
        steps.reverse()
    steps[0]()
    check(uri)
    table = INDEX_SECOND if first == "change" else INDEX_FIRST
    second = of_the_index if first == "change" else of_the_change
    expected = table[change][0 if second == "Pennon" else 1]
    if change == "write it anew" and of_the_change == "pylance":
        expected = "."
    found = outcome(steps[1])
    check(uri)
    assert found == expected
