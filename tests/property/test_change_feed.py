"""The change feed of random histories, by Pennon and pylance in turns, beside the rows of the versions."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.scan.changes.feed import ChangeFeed
from pennon.schema.field import Schema

COLUMNS = ["id", "x", "s", "l", "p"]
UNCHANGED = {"compact", "add a column", "drop a column", "index", "config", "rename"}
"""Operations that change no row."""
SEEDS = 40
MANY_SEEDS = 460


class History:
    """A table, and what is done to it."""

    def __init__(self, uri: str, seed: int, *, stable: bool) -> None:
        self.uri = uri
        self.random = random.Random(seed)
        self.next_id = 0
        self.steps: dict[int, str] = {}
        """The operation that made each version."""
        rows = self.rows(self.random.randrange(5, 40))
        size = self.random.choice([7, 20, 100])
        pennon.write_dataset(rows, uri, max_rows_per_file=size, enable_stable_row_ids=stable)

    def rows(self, count: int, ids: list[int] | None = None) -> pa.Table:
        """Return new rows."""
        if ids is None:
            ids = list(range(self.next_id, self.next_id + count))
            self.next_id += count
        each = self.random
        columns = {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([each.choice([None, 0.5, each.random()]) for _ in ids], pa.float64()),
            "s": pa.array([f"s{each.randrange(5)}" for _ in ids], pa.string()),
            "l": pa.array(
                [[each.randrange(3)] * each.randrange(3) for _ in ids], pa.list_(pa.int64())
            ),
            "p": pa.array(
                [{"a": each.randrange(9), "b": None} for _ in ids],
                pa.struct({"a": pa.int64(), "b": pa.string()}),
            ),
        }
        return pa.table(columns)

    def run(self, steps: int) -> None:
        """Do so many things, each by one of both libraries."""
        for _ in range(steps):
            library = self.random.choice([pennon, lance])
            step = self.random.choice(sorted(STEPS))
            before = pennon.dataset(self.uri).version
            STEPS[step](self, library, library.dataset(self.uri))
            for version in range(before + 1, pennon.dataset(self.uri).version + 1):
                self.steps[version] = f"{step} by {library.__name__}"

    def fitted(self, rows: pa.Table, handle: Any) -> pa.Table:
        """Return rows with all columns of the table."""
        for field in handle.schema:
            if field.name not in rows.column_names:
                rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
        return rows.select(handle.schema.names)


def append(it: History, library: Any, handle: Any) -> None:
    rows = it.fitted(it.rows(it.random.randrange(1, 15)), handle)
    library.write_dataset(rows, it.uri, mode="append", max_rows_per_file=9)


def delete(it: History, _: Any, handle: Any) -> None:
    handle.delete(f"id % {it.random.randrange(2, 9)} = 1")


def update(it: History, _: Any, handle: Any) -> None:
    handle.update({"x": "x + 1"}, where=f"id % {it.random.randrange(2, 7)} = 0")


def merge(it: History, _: Any, handle: Any) -> None:
    known = it.random.sample(range(it.next_id), min(5, it.next_id))
    new = [it.next_id, it.next_id + 1]
    it.next_id += 2
    rows = it.fitted(it.rows(0, [*sorted(known), *new]), handle)
    merging = handle.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merging.execute(rows)


def update_in_place(it: History, library: Any, handle: Any) -> None:
    fragment = it.random.choice(handle.get_fragments() or [None])
    if fragment is None:
        return
    ids = fragment.to_table(columns=["id"])["id"].to_pylist()
    some = it.random.sample(ids, len(ids) // 2)
    if not some:
        return
    new = pa.table(
        {"id": pa.array(some, pa.int64()), "x": [float(it.random.randrange(9)) for _ in some]}
    )
    updated, fields = fragment.update_columns(new, left_on="id", right_on="id")
    operation = library.LanceOperation.Update(
        updated_fragments=[updated], fields_modified=fields, update_mode="rewrite_columns"
    )
    library.LanceDataset.commit(it.uri, operation, read_version=handle.version)


def compact(it: History, _: Any, handle: Any) -> None:
    handle.optimize.compact_files(target_rows_per_fragment=it.random.choice([10, 50, 1000]))


def restore(it: History, library: Any, handle: Any) -> None:
    library.dataset(it.uri, version=it.random.randrange(1, handle.version + 1)).restore()


def add_column(_: History, __: Any, handle: Any) -> None:
    handle.add_columns({f"c{handle.version}": "id * 2"})


def drop_column(it: History, _: Any, handle: Any) -> None:
    extra = [name for name in handle.schema.names if name not in COLUMNS]
    if extra:
        handle.drop_columns([it.random.choice(extra)])


def index(_: History, __: Any, handle: Any) -> None:
    handle.create_scalar_index("id", "BTREE", replace=True)


def overwrite(it: History, library: Any, handle: Any) -> None:
    if it.random.random() < 0.3:
        stable = handle.has_stable_row_ids
        rows = it.rows(it.random.randrange(1, 20))
        library.write_dataset(rows, it.uri, mode="overwrite", enable_stable_row_ids=stable)


STEPS = {
    "append": append,
    "delete": delete,
    "update": update,
    "merge": merge,
    "update in place": update_in_place,
    "compact": compact,
    "restore": restore,
    "add a column": add_column,
    "drop a column": drop_column,
    "index": index,
    "overwrite": overwrite,
}


def rows_of(table: pa.Table) -> Counter[str]:
    """Return rows as they may be compared: NaN is NaN."""
    return Counter(map(repr, table.select(COLUMNS).to_pylist()))


def versions_of(history: History) -> Iterator[tuple[int, Counter[str], Counter[str], pa.Table]]:
    """Yield each version, the rows before and behind it, and its changes."""
    newest = pennon.dataset(history.uri)
    every = newest.changes(0, columns=COLUMNS).read_all()
    before: Counter[str] = Counter()
    for version in range(1, newest.version + 1):
        after = rows_of(pennon.dataset(history.uri, version=version).to_table())
        mine = every.filter(pc.equal(every["_commit_version"], version))
        yield version, before, after, mine
        before = after


def by_smallest_parts(uri: str) -> Counter[str]:
    """Return all changes, read by parts of one fragment each, as other processes would."""
    table = pennon.dataset(uri)
    snapshot = table.snapshot
    fields = {each.name: each for each in snapshot.manifest.schema.fields}
    shown = Schema(tuple(fields[name] for name in COLUMNS))
    feed = ChangeFeed(snapshot, 0, table.version, shown)
    found: Counter[str] = Counter()
    for version in feed.versions():
        for part in version.parts(1):
            for batch in pickle.loads(pickle.dumps(part)).batches():
                found.update(map(repr, batch.to_pylist()))
    return found


def check(uri: str, seed: int) -> None:
    """Check the feed of one random history."""
    stable = bool(seed % 2)
    history = History(uri, seed, stable=stable)
    history.run(history.random.randrange(4, 12))
    whole = pennon.dataset(uri).changes(0, columns=COLUMNS).read_all()
    assert by_smallest_parts(uri) == Counter(map(repr, whole.to_pylist())), history.steps
    for version, before, after, changes in versions_of(history):
        step = history.steps.get(version, "create")
        kinds: dict[str, Counter[str]] = {}
        for kind in ("insert", "delete", "update_preimage", "update_postimage"):
            mine = changes.filter(pc.equal(changes["_change_type"], kind))
            kinds[kind] = rows_of(mine)
        gone = kinds["delete"] + kinds["update_preimage"]
        come = kinds["insert"] + kinds["update_postimage"]
        where = f"seed {seed}, version {version}: {step}; {history.steps}"
        assert not gone - before, where
        assert before - gone + come == after, where
        assert kinds["update_preimage"].total() == kinds["update_postimage"].total(), where
        if step.partition(" by ")[0] in UNCHANGED:
            assert not gone, where
            assert not come, where
        if step.startswith("append"):
            assert not gone, where
        if stable and step.startswith("update"):
            assert not kinds["delete"], where
            assert not kinds["insert"], where


def check_net(uri: str, seed: int) -> None:
    """Check the net changes between two versions of a history with stable row ids."""
    history = History(uri, seed, stable=True)
    history.run(history.random.randrange(4, 12))
    newest = pennon.dataset(uri).version
    begin, end = sorted(history.random.sample(range(newest + 1), 2))
    found = pennon.dataset(uri).changes(begin, end, columns=COLUMNS, net=True).read_all()
    sides = [by_id(uri, version) if version else {} for version in (begin, end)]
    old, new = sides
    names = ("insert", "delete", "update_preimage", "update_postimage")
    kinds = {name: rows_of(found.filter(pc.equal(found["_change_type"], name))) for name in names}
    where = f"seed {seed}, {begin} to {end}: {history.steps}"
    assert kinds["insert"] == Counter(new[row] for row in new.keys() - old.keys()), where
    assert kinds["delete"] == Counter(old[row] for row in old.keys() - new.keys()), where
    both = old.keys() & new.keys()
    changed = [row for row in both if old[row] != new[row]]
    before, after = Counter(old[row] for row in changed), Counter(new[row] for row in changed)
    same = kinds["update_preimage"] - before
    assert same == kinds["update_postimage"] - after, where  # updated, to the values that they had
    assert kinds["update_preimage"] - same == before, where
    assert kinds["update_postimage"] - same == after, where


def by_id(uri: str, version: int) -> dict[int, str]:
    """Return the rows of a version by their ids."""
    rows = pennon.dataset(uri, version=version).to_table(columns=COLUMNS, with_row_id=True)
    shown = map(repr, rows.select(COLUMNS).to_pylist())
    return dict(zip(rows["_rowid"].to_pylist(), shown, strict=True))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_net_changes_of_random_histories_equal_the_difference_of_two_versions(
    tmp_path: Path, seed: int
) -> None:
    check_net(str(tmp_path / "t"), seed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_change_feed_of_random_histories_equals_the_rows_of_versions(
    tmp_path: Path, seed: int
) -> None:
    check(str(tmp_path / "t"), seed)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_change_feed_of_many_random_histories_equals_the_rows_of_versions(
    tmp_path: Path, shard: int
) -> None:
    for seed in range(SEEDS + shard, SEEDS + MANY_SEEDS, 4):
        check(str(tmp_path / str(seed)), seed)
