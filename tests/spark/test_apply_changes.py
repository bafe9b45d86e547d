"""`LanceTable.applyChanges`: random events, batch by batch, beside a model of the last states and of all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.spark import LanceTable
from tests.spark.failing import AppendsMeanwhile

EVENT = "id bigint, x bigint, at bigint, gone boolean"


def batches(seed: int) -> list[list[tuple[int | None, int, int, bool]]]:
    """Return batches of events, each in no order; moments grow from batch to batch."""
    each = random.Random(seed)
    made, now = [], 0
    for _ in range(3):
        events: list[tuple[int | None, int, int, bool]] = []
        for _ in range(each.randrange(3, 12)):
            now += each.randrange(2)
            key = each.choice([None, *range(5)])
            if not any(event[0] == key and event[2] == now for event in events):
                events.append((key, each.randrange(100), now, each.random() < 0.3))
        each.shuffle(events)
        now += 1
        made.append(events)
    return made


@pytest.mark.parametrize("seed", range(2))
def test_apply_changes_of_type_1_keeps_the_last_state_of_each_key(
    spark: SparkSession, uri: str, seed: int
) -> None:
    rows = pa.table({"id": [0, 9], "x": [0, 9], "at": [-1, -1]}, _schema("id", "x", "at"))
    pennon.write_dataset(rows, uri)
    table, model = (
        LanceTable.forPath(spark, uri),
        dict[int | None, tuple[int, int]]({0: (0, -1), 9: (9, -1)}),
    )
    for number, events in enumerate(
        [*batches(seed), batches(seed)[0]]
    ):  # the first one comes late again
        for key, x, at, gone in sorted(events, key=lambda event: event[2]):
            if number == 3 and ((key in model and model[key][1] >= at) or key not in model):
                continue
            model.pop(key, None)
            if not gone:
                model[key] = (x, at)
        source = spark.createDataFrame([e for e in events if number < 3 or e[0] in model], EVENT)
        table.applyChanges(source, ["id"], "at", applyAsDeletes="gone", exceptColumns=["gone"])
        found = pennon.dataset(uri).to_table().to_pylist()
        assert {row["id"]: (row["x"], row["at"]) for row in found} == model
        assert len(found) == len(model)


@pytest.mark.parametrize("seed", range(2))
def test_apply_changes_of_type_2_keeps_all_states(spark: SparkSession, uri: str, seed: int) -> None:
    schema = _schema("id", "x", "__START_AT", "__END_AT")
    pennon.write_dataset(schema.empty_table(), uri)
    table = LanceTable.forPath(spark, uri)
    model: dict[Any, list[list[Any]]] = {}
    for number, events in enumerate(batches(seed)):
        for key, x, at, gone in sorted(events, key=lambda event: event[2]):
            states = model.setdefault(key, [])
            if states and states[-1][2] is None:
                states[-1][2] = at
            if not gone:
                states.append([x, at, None])
        source = spark.createDataFrame(events, EVENT)
        for _ in range(2):  # a batch that is run again changes nothing
            table.applyChanges(
                source,
                ["id"],
                "at",
                applyAsDeletes="gone",
                exceptColumns=["gone", "at"],
                storedAsScdType=2,
                txnAppId="cdc",
                txnVersion=number,
            )
        found: dict[Any, list[list[Any]]] = {}
        for row in pennon.dataset(uri).to_table().to_pylist():
            state = [row["x"], row["__START_AT"], row["__END_AT"]]
            found.setdefault(row["id"], []).append(state)
        ordered = {key: sorted(states, key=lambda state: state[1]) for key, states in found.items()}
        assert ordered == {key: states for key, states in model.items() if states}


@pytest.mark.parametrize("kind", [1, 2])
def test_apply_changes_of_two_writers_at_once_leave_one_state_of_a_key(
    spark: SparkSession, uri: str, tmp_path: Path, kind: int
) -> None:
    """The other writer appends a state of the key while the events are read."""
    numbers = ["x", "at"] if kind == 1 else ["x", "__START_AT", "__END_AT"]
    schema = pa.schema([("id", pa.string()), *((name, pa.int64()) for name in numbers)])
    pennon.write_dataset(schema.empty_table(), uri)
    state = {"id": "a", "x": 1} | ({"at": 10} if kind == 1 else {"__START_AT": 10})
    meets = sf.udf(AppendsMeanwhile(uri, state, str(tmp_path / "calls")), "string")
    events = spark.createDataFrame([("a", 2, 20)], "id string, x bigint, at bigint")
    LanceTable.forPath(spark, uri).applyChanges(
        events.select(meets("id").alias("id"), "x", "at"),
        ["id"],
        "at",
        exceptColumns=[] if kind == 1 else ["at"],
        storedAsScdType=kind,
    )
    assert (tmp_path / "calls").exists()
    found = pennon.dataset(uri).to_table().sort_by("x").to_pylist()
    if kind == 1:
        assert found == [{"id": "a", "x": 2, "at": 20}]
    else:
        first = {"id": "a", "x": 1, "__START_AT": 10, "__END_AT": 20}
        assert found == [first, {"id": "a", "x": 2, "__START_AT": 20, "__END_AT": None}]


def test_apply_changes_takes_a_change_feed_into_another_table(
    spark: SparkSession, uri: str
) -> None:
    """A feed says itself what it deletes, and in which order."""
    ds = pennon.write_dataset(pa.table({"id": [1, 2, 3], "x": [1, 2, 3]}), uri)
    copy = f"{uri}.copy"
    pennon.write_dataset(ds.to_table(), copy)
    ds.update({"x": "x * 10"}, where="id > 1")
    ds.delete("id = 3")
    ds.insert(pa.table({"id": [4], "x": [4]}))
    ds.update({"x": "x + 1"}, where="id = 4")
    feed = LanceTable.forPath(spark, uri).changes(1)
    LanceTable.forPath(spark, copy).applyChanges(feed, ["id"])
    rows = [pennon.dataset(each).to_table().sort_by("id") for each in (uri, copy)]
    assert rows[0].equals(rows[1])


def test_apply_changes_refuses_unknown_columns_and_kinds(spark: SparkSession, uri: str) -> None:
    pennon.write_dataset(pa.table({"id": [1], "x": [1]}), uri)
    table = LanceTable.forPath(spark, uri)
    source = spark.createDataFrame([(1, 1, 1, False)], EVENT)
    with pytest.raises(ValueError, match="the source has no column 'zz'"):
        table.applyChanges(source, ["zz"], "at")
    with pytest.raises(ValueError, match="sequenceBy says in which order"):
        table.applyChanges(source, ["id"])
    with pytest.raises(
        ValueError, match="the table has no column 'at'; it has id, x; exceptColumns"
    ):
        table.applyChanges(source, ["id"], "at")
    with pytest.raises(ValueError, match="storedAsScdType is 1"):
        table.applyChanges(source, ["id"], "at", storedAsScdType=3)


def _schema(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])
