"""A table as a stream: random histories, limits and restarts give each change once, in the order of commits."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import SchemaMismatchError
from pennon.scan.changes.stream import (
    NO_LIMITS,
    Amount,
    Position,
    StreamLimits,
    StreamRules,
    TableStream,
)
from pennon.schema.field import Schema
from tests.property.test_change_feed import COLUMNS, History

SEEDS = 25
MANY_SEEDS = 200
SHOWN = [*COLUMNS, "_change_type", "_commit_version"]


def opened(uri: str, rules: StreamRules) -> TableStream:
    """Return a stream of the newest version's columns."""
    snapshot = pennon.dataset(uri)._snapshot
    schema = snapshot.manifest.schema
    own = {each.name: each for each in schema.fields}
    return TableStream(
        snapshot, Schema(tuple(own[name] for name in COLUMNS), schema.metadata), rules
    )


def limits_of(each: random.Random) -> StreamLimits:
    """Return some limits."""
    kinds = [
        NO_LIMITS,
        StreamLimits(fragments=each.randrange(1, 4)),
        StreamLimits(rows=each.randrange(1, 40)),
        StreamLimits(size_bytes=each.randrange(1, 9000)),
    ]
    return each.choice(kinds)


def read(
    uri: str, rules: StreamRules, start: Position, each: random.Random
) -> Iterator[tuple[Position, StreamLimits, Amount, list[pa.RecordBatch]]]:
    """Yield steps of a stream that is opened anew now and then, up to the newest version."""
    stream, at = opened(uri, rules), start
    while True:
        if each.random() < 0.3:
            stream = opened(uri, rules)
        limits = limits_of(each)
        end, amount = stream.advance(at, stream.newest(), limits)
        if end == at:
            return
        parts = list(stream.parts(at, end))
        rows = [
            batch
            for part in parts
            for some in part.change.parts(each.choice([1, 2**30]), part.fragments)
            for batch in some.batches()
        ]
        assert amount.fragments == sum(len(part.fragments) for part in parts)
        yield end, limits, amount, rows
        at = Position.from_json(json.loads(json.dumps(end.to_json())))


def lines(batches: list[pa.RecordBatch]) -> list[str]:
    """Return rows as they may be compared."""
    return [repr(row) for batch in batches for row in pa.table(batch).select(SHOWN).to_pylist()]


def check(uri: str, seed: int) -> None:
    """Check the streams of one random history."""
    history = History(uri, seed, stable=bool(seed % 2))
    each = random.Random(seed)
    history.run(each.randrange(4, 12))
    every = pennon.dataset(uri).changes(0, columns=COLUMNS).read_all()
    told: list[str] = []
    for _, limits, amount, rows in read(uri, StreamRules(shows_changes=True), Position(1), each):
        assert limits.allow(amount) or amount.fragments == 1
        told += lines(rows)
    expected = lines(every.to_batches())
    assert Counter(told) == Counter(expected)
    assert list(map(version_of, told)) == list(map(version_of, expected))
    kinds: dict[int, set[str]] = {}
    for row in every.select(["_commit_version", "_change_type"]).to_pylist():
        kinds.setdefault(row["_commit_version"], set()).add(row["_change_type"])
    restored = {n for n, step in history.steps.items() if step.startswith("restore")}
    appends = {n for n, found in kinds.items() if found == {"insert"} and n not in restored}
    rules = StreamRules(skip_changes=True)
    found = [line for step in read(uri, rules, Position(1), each) for line in lines(step[3])]
    found = [line for line in found if version_of(line) not in restored]
    assert Counter(found) == Counter(line for line in expected if version_of(line) in appends)


def version_of(line: str) -> int:
    """Return the version of a row that `lines` gave."""
    return int(line.rpartition(":")[2][1:-1])


def check_snapshot(uri: str, seed: int) -> None:
    """Check a stream that begins with the rows of a version while the table goes on."""
    history = History(uri, seed, stable=bool(seed % 2))
    each = random.Random(seed)
    history.run(each.randrange(3))
    begin = pennon.dataset(uri)
    rows = Counter(map(repr, begin.to_table(columns=COLUMNS).to_pylist()))
    rules, at = StreamRules(shows_changes=True), Position(int(begin.version), is_snapshot=True)
    state = Counter[str]()
    for _ in range(4):
        try:
            for end, _, _, batches in read(uri, rules, at, each):
                for line in (row for batch in batches for row in pa.table(batch).to_pylist()):
                    sign = -1 if line["_change_type"] in ("delete", "update_preimage") else 1
                    state[repr({name: line[name] for name in COLUMNS})] += sign
                at = end
                if each.random() < 0.5:
                    history.run(1)
        except (
            SchemaMismatchError
        ):  # a column was overwritten while the stream ran: it is opened anew
            continue
        break
    rows = Counter(map(repr, pennon.dataset(uri).to_table(columns=COLUMNS).to_pylist()))
    assert +state == rows, history.steps
    assert not -state, history.steps


@pytest.mark.parametrize("seed", range(SEEDS))
def test_stream_of_random_histories_gives_each_change_once(tmp_path: Path, seed: int) -> None:
    check(str(tmp_path / "t"), seed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_stream_of_a_snapshot_and_changes_adds_up_to_the_newest_rows(
    tmp_path: Path, seed: int
) -> None:
    check_snapshot(str(tmp_path / "t"), seed)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(2))
def test_stream_of_many_random_histories_gives_each_change_once(tmp_path: Path, shard: int) -> None:
    for seed in range(SEEDS + shard, SEEDS + MANY_SEEDS, 2):
        check(str(tmp_path / f"a{seed}"), seed)
        check_snapshot(str(tmp_path / f"b{seed}"), seed)
