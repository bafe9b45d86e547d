"""Results of tasks round-trip as bytes; other bytes are a FormatError, or a result."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.core.units import FragmentId
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.ops.cluster.plan import plan_clusterings
from pennon.ops.cluster.task import Gathered
from pennon.ops.columns.alter import plan_alter
from pennon.ops.columns.alterations import Alteration
from pennon.ops.compact.options import CompactOptions
from pennon.ops.compact.task import plan_compact
from pennon.ops.index.builders import THREADS
from pennon.ops.index.create import plan_index
from pennon.ops.index.request import IndexRequest
from pennon.ops.index.vector_build import VectorBuild
from pennon.ops.index.vector_shuffle import VectorShuffle
from pennon.ops.rows.change_rows import plan_change
from pennon.ops.rows.changed_wire import Changed, parse_removals, serialize_removals
from pennon.ops.rows.delete import plan_delete
from pennon.ops.rows.deletion_vectors import Removal
from pennon.ops.versions.deep_clone import plan_copy
from pennon.ops.write import WriteMode, plan_write
from pennon.scan.read.tasks import plan_tasks
from pennon.scan.snapshot import Snapshot
from pennon.spark.source.row_write import CheckedRows, CheckedWrite, TableWrite


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Four fragments with deletion files and stable row ids."""
    uri = tmp_path_factory.mktemp("answers") / "t"
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 200, pa.float32()), 2)
    rows = pa.table({"id": range(100), "s": [{"x": n} for n in range(100)], "v": vectors})
    made = pennon.write_dataset(rows, uri, max_rows_per_file=30, enable_stable_row_ids=True)
    made.delete("id % 7 = 0")
    return pennon.dataset(uri).snapshot


def answers(snapshot: Snapshot) -> list[tuple[Any, Any]]:
    """Return tasks, and an answer of each."""
    fragments = list(snapshot.manifest.fragments)
    assert all(each.deletion_file and each.row_ids for each in fragments)
    removals = [Removal(FragmentId(0), 3, fragments[0]), Removal(FragmentId(1), 30, None)]
    (clustering,) = plan_clusterings(snapshot, ["id"], CompactOptions(), curved=False)
    shares = [tuple(plan_tasks(snapshot))]
    sample = clustering.sample(shares)
    gather = clustering.gather(clustering.split(shares, [sample.run(0)]))
    compact = plan_compact(snapshot, CompactOptions(target_rows_per_fragment=1000))
    schema = pa.schema([("id", pa.int64())])
    write = TableWrite(plan_write(snapshot.store, schema, WriteMode.OVERWRITE).task)
    vectors = VectorBuild.plan(
        IndexRequest(snapshot, "v", "IVF_FLAT", "v_idx", {"num_partitions": 1})
    )
    build = vectors.train(THREADS)
    part = VectorShuffle(build, (), 1).write
    index = plan_index(snapshot, "id", "BTREE", "id_idx", {})
    change, delete = plan_change(snapshot, ()), plan_delete(snapshot, "id < 9")
    alter = plan_alter(snapshot, [Alteration("id", data_type=pa.int32())]).task
    copy = plan_copy(snapshot, open_store(f"{snapshot.store.uri}.copy"))
    return [
        (change, Changed(tuple(removals), tuple(fragments[2:]), (5, 0, 7))),
        (delete, removals),
        (alter, fragments[2]),
        (copy, 1 << 40),
        (sample, sample.run(0)),
        (gather, Gathered(7, tuple(fragments))),
        (gather, Gathered(None, ())),
        (compact, compact.run(0)),
        (write, fragments),
        (write, []),
        (CheckedWrite(write), CheckedRows(tuple(fragments), 2, "{'id': 1}")),
        (index, index.run(0)),
        (part, (3, index.run(0))),
        (part, None),
    ]


def test_task_results_round_trip_as_bytes(snapshot: Snapshot) -> None:
    for task, answer in answers(snapshot):
        assert task.from_bytes(task.to_bytes(answer)) == answer, type(task).__name__


def test_damaged_task_results_raise_format_error_or_parse(snapshot: Snapshot) -> None:
    chance, refused = random.Random(5), 0
    for task, answer in answers(snapshot):
        whole = task.to_bytes(answer)
        for _ in range(60):
            damaged = bytearray(whole[: chance.randrange(len(whole) + 1)] or b"\0")
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            try:
                task.from_bytes(bytes(damaged))
            except FormatError:
                refused += 1
    assert refused > 300


def test_a_pickle_is_refused(snapshot: Snapshot) -> None:
    pickled = b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94."
    for task, _ in answers(snapshot):
        with pytest.raises(FormatError):
            task.from_bytes(pickled)


def test_compaction_result_of_unplanned_bin_is_refused(snapshot: Snapshot) -> None:
    task = plan_compact(snapshot, CompactOptions(target_rows_per_fragment=1000))
    message = task.to_bytes(task.run(0))
    with pytest.raises(FormatError, match="begins with fragment 0; there is none"):
        replace(task, bins=task.bins[1:]).from_bytes(message)


def test_removal_with_fragment_id_above_32_bits_is_refused() -> None:
    message = serialize_removals([Removal(FragmentId(1 << 40), 1, None)])
    with pytest.raises(FormatError, match="does not fit a row address"):
        parse_removals(message)
