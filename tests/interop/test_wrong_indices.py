"""Indices that do not name the rows that they should: found by `validate`, made anew by `optimize_indices`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError
from pennon.ops.commit import commit_on
from pennon.ops.compact.task import Rewritten, commit_compact
from pennon.table.indices import SYSTEM, Index
from pennon.table.indices_wire import covering, parse_indices
from pennon.table.operations import CreateIndex
from tests.interop import index_matrix as matrix


@pytest.fixture(params=[pennon, lance], ids=["made by Pennon", "made by pylance"])
def uri(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    folder = str(tmp_path / "t.lance")
    matrix.make_table(folder, request.param, stable=False)
    return folder


def wrong_names(uri: str) -> set[str]:
    """Drop one index after another that `validate` finds wrong, and return their names."""
    found = set()
    while True:
        table = pennon.dataset(uri)
        try:
            table.validate()
        except FormatError as error:
            name = str(error).split("'")[1]
            table.drop_index(name)
            found.add(name)
        else:
            return found


def indices(uri: str) -> list[Index]:
    section = pennon.dataset(uri).snapshot.manifest.indices
    return [index for index in parse_indices(section) if index.name not in SYSTEM]


def turn_round(uri: str) -> None:
    """Put rows into another order as a Z-ordering of Pennon 0.1.0 did, which moved indices as a compaction does."""
    table = pennon.dataset(uri)
    rows = table.to_table()
    shuffled = rows.take(pa.array([(7 * n + 3) % rows.num_rows for n in range(rows.num_rows)]))
    made = pennon.fragment.write_fragments(shuffled, uri, mode="append")
    snapshot = table.snapshot
    new = tuple(each.to_fragment() for each in made)
    commit_compact(
        snapshot.store,
        [Rewritten(snapshot.manifest.version, tuple(snapshot.manifest.fragments), new)],
    )


def claim_more(uri: str) -> None:
    """Append, and let all entries say that they cover the new fragment."""
    matrix.append(pennon, uri)
    snapshot = pennon.dataset(uri).snapshot
    everything = frozenset(each.id for each in snapshot.manifest.fragments)
    old = tuple(indices(uri))
    new = tuple(covering(each, everything) for each in old)
    commit_on(snapshot, CreateIndex(new, old))


ZONES = {"zm_idx", "bf_idx"}


def test_optimize_keeps_correct_indices_unchanged(uri: str) -> None:
    matrix.update(pennon, uri)
    matrix.delete(lance, uri)
    matrix.optimize(pennon, uri)
    pennon.dataset(uri).validate()
    before = indices(uri)
    matrix.optimize(pennon, uri)
    assert indices(uri) == before


@pytest.mark.parametrize("damage", [turn_round, claim_more])
def test_validate_reports_wrong_indices(uri: str, damage: Any) -> None:
    damage(uri)
    expected = {index.name for index in indices(uri)}
    if damage is turn_round:
        expected -= ZONES  # they cover nothing after a compaction
    assert wrong_names(uri) == expected


@pytest.mark.parametrize("damage", [turn_round, claim_more])
def test_optimize_rebuilds_wrong_indices(uri: str, damage: Any) -> None:
    damage(uri)
    assert matrix.check(lance.dataset(uri))
    with pytest.warns(UserWarning, match="is made anew: it does not find"):
        matrix.optimize(pennon, uri)
    pennon.dataset(uri).validate()
    for library in (pennon, lance):
        assert not matrix.check(library.dataset(uri))


def test_optimize_keeps_dot_codes_added_by_pylance(tmp_path: Path) -> None:
    """It codes them otherwise than those that it trained on."""
    folder = str(tmp_path / "t.lance")
    lance.write_dataset(matrix.rows(0, 60), folder)
    options: Any = {"metric": "dot", "num_partitions": 1, "num_sub_vectors": 4, "num_bits": 4}
    lance.dataset(folder).create_index("vf", "IVF_PQ", **options)
    matrix.append(lance, folder)
    matrix.new_segments(lance, folder)
    pennon.dataset(folder).validate()
    before = indices(folder)
    matrix.optimize(pennon, folder)
    assert indices(folder) == before


def test_validate_accepts_text_index_of_null_fragment(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    data = pa.table({"text": ["a b"] * 60, "k": range(60)})
    lance.write_dataset(data, folder, max_rows_per_file=20)
    lance.dataset(folder).create_scalar_index("text", "INVERTED")
    lance.dataset(folder).delete("k % 20 = 1")
    matrix.defer(lance, folder)
    nothing = pa.table({"text": pa.array([None], pa.string()), "k": [77]})
    lance.write_dataset(nothing, folder, mode="append")
    lance.dataset(folder).optimize.optimize_indices()
    pennon.dataset(folder).validate()
