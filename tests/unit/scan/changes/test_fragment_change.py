"""Parts of a version's changes: the fragments between which rows may have moved."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

import pennon
from pennon.core.units import FragmentId
from pennon.scan.changes.feed import ChangeFeed, VersionChange
from pennon.scan.changes.fragment_change import FragmentChange, Moves
from pennon.table.fragment import Fragment
from pennon.table.row_ids.encode_wire import encode_row_id_range


def _fragment(number: int, first: int, rows: int) -> Fragment:
    return Fragment(FragmentId(number), (), rows, row_ids=encode_row_id_range(first, rows))


def _versions(table: pennon.LanceDataset, begin: int) -> list[VersionChange]:
    snapshot = table.snapshot
    return list(ChangeFeed(snapshot, begin, table.version, snapshot.manifest.schema).versions())


def test_moves_meet_fragments_with_overlapping_row_ids() -> None:
    lost = [FragmentChange(_fragment(n, 100 * n, 100), None) for n in range(4)]
    gained = [
        FragmentChange(None, _fragment(10, 250, 10)),
        FragmentChange(None, _fragment(11, 190, 20)),
        FragmentChange(None, _fragment(12, 400, 5)),
    ]
    moves = Moves((*lost, *gained))
    assert moves.meeting([lost[0]]) == ()
    assert moves.meeting([lost[1]]) == (gained[1],)
    assert moves.meeting([lost[2]]) == (gained[0], gained[1])
    assert moves.meeting([gained[1]]) == (lost[1], lost[2])
    assert moves.meeting([gained[2]]) == ()
    assert moves.meeting([lost[1], gained[0]]) == (lost[2], gained[1])


def test_moves_of_fragments_without_known_row_ids_meet_all() -> None:
    unknown = FragmentChange(Fragment(FragmentId(1), (), 5), None)
    gained = FragmentChange(None, _fragment(2, 7, 5))
    assert Moves((unknown, gained)).meeting([unknown]) == (gained,)


def test_moves_do_not_meet_fragments_with_rows_updated_in_place() -> None:
    same = _fragment(1, 0, 100)
    in_place = FragmentChange(same, same, frozenset({0}))  # type: ignore[arg-type]
    gained = FragmentChange(None, _fragment(2, 7, 5))
    assert Moves((in_place, gained)).meeting([gained]) == ()


def test_parts_of_an_update_show_each_row_once(tmp_path: Path) -> None:
    rows = pa.table({"a": range(4000)})
    table = pennon.write_dataset(
        rows, str(tmp_path / "t"), max_rows_per_file=100, enable_stable_row_ids=True
    )
    for first in range(0, 4000, 1000):
        table.update({"a": "a + 0"}, where=f"a % 100 = 7 AND a >= {first} AND a < {first} + 1000")
    for change in _versions(table, 1):
        parts = list(change.parts(1))
        assert len(parts) == len(change.fragments) == 11
        kinds = [
            kind
            for part in parts
            for batch in pickle.loads(pickle.dumps(part)).batches()
            for kind in batch["_change_type"].to_pylist()
        ]
        assert sorted(kinds) == ["update_postimage"] * 10 + ["update_preimage"] * 10


def test_rows_updated_from_many_fragments_to_many_are_found_in_each_part(tmp_path: Path) -> None:
    count = 2000
    table = pennon.write_dataset(
        pa.table({"k": range(count), "v": [0] * count}),
        str(tmp_path / "t"),
        max_rows_per_file=250,
        enable_stable_row_ids=True,
    )
    source = pa.table({"k": [7 * n % count for n in range(count)], "v": [1] * count})
    table.merge_insert("k").when_matched_update_all().execute(source)
    (change,) = _versions(table, 1)
    read = [
        batch for part in change.parts(1) for batch in pickle.loads(pickle.dumps(part)).batches()
    ]
    kinds = (
        pa.Table.from_batches(read).group_by("_change_type").aggregate([("k", "count_distinct")])
    )
    assert dict(zip(*(column.to_pylist() for column in kinds.columns), strict=True)) == {
        "update_preimage": count,
        "update_postimage": count,
    }
