"""Old releases of pylance read Pennon's files as well as those of the newest release.

Old releases have faults of their own: 1.0.4 loses lists without any items, and through a filter it gives
NULL structs of several fields as structs of NULLs, whoever wrote the file.  So the same table is written
by both, and ours may fail only where the oracle's does.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from tests.interop.oracle import MIDDLE, OLDEST, Oracle, OracleError

_STRUCT = pa.struct([("a", pa.int32()), ("b", pa.string())])
_FLAT = [pa.int64(), pa.string(), pa.bool_(), pa.list_(pa.int32())]
_NESTED = [_STRUCT, pa.struct([("a", pa.int32())]), pa.list_(pa.list_(pa.string()))]
_KINDS = {"2.0": _FLAT, "2.1": [*_FLAT, *_NESTED]}
_ROWS = [1, 2, 3, 5, 7, 12, 20, 1020]


def _value(rng: Random, kind: pa.DataType, nulls: list[float]) -> Any:
    """Return a value of which each layer is NULL with a probability of its own."""
    if rng.random() < nulls[0]:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _value(rng, f.type, nulls[1:]) for f in kind}
    if pa.types.is_list(kind):
        return [_value(rng, kind.value_type, nulls[1:]) for _ in range(rng.randrange(4))]
    number = rng.randrange(100)
    if pa.types.is_string(kind):
        return "ab" * (number % 4)
    return number % 2 == 0 if pa.types.is_boolean(kind) else number


def _column(rng: Random, kind: pa.DataType, rows: int) -> pa.Array:
    nulls = [rng.choice([0.0, 0.3, 1.0]), *(rng.choice([0.0, 0.3]) for _ in range(2))]
    return pa.array([_value(rng, kind, nulls) for _ in range(rows)], kind)


def _narrow(rng: Random, rows: int, kinds: list[pa.DataType]) -> pa.Table:
    return pa.table({"id": range(rows), "c": _column(rng, rng.choice(kinds), rows)})


def _wide(rng: Random, rows: int, kinds: list[pa.DataType]) -> pa.Table:
    """Return a table of 30 to 200 columns, without lists: one that is lost hides the others."""
    plain = [kind for kind in kinds if not pa.types.is_list(kind)]
    columns = {f"c{n}": _column(rng, rng.choice(plain), rows) for n in range(rng.randint(30, 200))}
    return pa.table({"id": range(rows), **columns})


def _wrong(answer: Any, wanted: pa.Table) -> list[str]:
    """Return the columns that an answer has wrong; all of them if there is none."""
    if isinstance(answer, OracleError):
        return wanted.column_names
    return [c for c in wanted.column_names if answer[c].to_pylist() != wanted[c].to_pylist()]


@pytest.mark.parametrize("shape", [_narrow, _wide])
@pytest.mark.parametrize(
    ("release", "version"), [(OLDEST, "2.0"), (MIDDLE, "2.0"), (MIDDLE, "2.1")]
)
def test_old_pylance_reads_pennon_files_like_its_own(
    oracles: dict[str, Oracle], release: str, version: str, shape: Any, folder: Path
) -> None:
    found, right = [], 0
    for seed in range(32 if shape is _narrow else 8):
        rng = Random(seed)
        rows = _ROWS[seed % len(_ROWS)]
        table = shape(rng, rows, _KINDS[version])
        picked = sorted(rng.sample(range(rows), min(rows, 4)))
        reads: dict[str, tuple[dict[str, Any], list[int]]] = {
            "scan": ({"op": "scan"}, list(range(rows))),
            "take": ({"op": "take", "indices": picked}, picked),
            "all": ({"op": "scan", "filter": "id >= 0"}, list(range(rows))),
            "some": ({"op": "scan", "filter": "id % 2 = 0"}, list(range(0, rows, 2))),
        }
        answers = []
        for who, module in (("ours", pennon), ("theirs", lance)):
            uri = str(folder / f"{who}-{seed}")
            module.write_dataset(table, uri, data_storage_version=version)
            calls = [{**call, "uri": uri, "out": True} for call, _ in reads.values()]
            answers.append(oracles[release].run(calls))
        for (name, (_, wanted)), ours, theirs in zip(reads.items(), *answers, strict=True):
            bad = set(_wrong(theirs, table.take(wanted)))
            right += len(table.column_names) - len(bad)
            lost = [c for c in _wrong(ours, table.take(wanted)) if c not in bad]
            if lost:
                found.append(f"seed {seed}, {rows} rows, {name}: {lost[:5]}, {str(ours)[:200]}")
    assert not found
    assert right > 100  # or nothing was compared
