"""Operations on columns that only version 2.2 has: fields of structs that are there, parts of maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from tests.interop.test_columns import Change, Twins

IN_STRUCTS: dict[str, Change] = {
    "field": lambda ds: ds.add_columns(pa.field("s", pa.struct([("z", pa.int8())]))),
    "more": lambda ds: ds.add_columns(
        pa.schema(
            [
                ("n", pa.struct([("z", pa.int8())])),
                (
                    "s",
                    pa.struct([("z", pa.struct([("y", pa.list_(pa.int8()))])), ("w", pa.int8())]),
                ),
            ]
        )
    ),
    "field that is there": lambda ds: ds.add_columns(pa.field("s", pa.struct([("x", pa.int32())]))),
    "of another type": lambda ds: ds.add_columns(pa.field("s", pa.struct([("x", pa.int8())]))),
    "of what is none": lambda ds: ds.add_columns(pa.field("b", pa.struct([("x", pa.int8())]))),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_null_fields_added_to_structs(version: str, tmp_path: Path) -> None:
    """Tables of 2.2 get them, others do not; then rows are written with them, and again."""
    for name, change in IN_STRUCTS.items():
        pair = Twins(tmp_path / name, data_storage_version=version)
        theirs, ours = pair.both(change)
        assert theirs == ours, name
        assert (ours == "done") == (version == "2.2" and name in ("field", "more"))
        pair.check()
        for dataset in (pair.theirs, pair.ours):
            dataset.update({"f": "f + 1"}, where="a > 8")
            dataset.optimize.compact_files()
        pair.check(same_files=False)


WITH_MAPS = pa.table(
    {
        "a": range(6),
        "m": pa.array(
            [[("x", 1), ("y", None)], None, [], [("z", 3)], None, [("x", 4)]],
            pa.map_(pa.string(), pa.int64()),
        ),
        "s": pa.array(
            [{"m": [(1, {"u": 2, "w": "t"}), (2, None)]}, None, {"m": None}, {"m": []}]
            + [None] * 2,
            pa.struct(
                [("m", pa.map_(pa.int32(), pa.struct([("u", pa.int32()), ("w", pa.string())])))]
            ),
        ),
    }
)
OF_MAPS: dict[str, Change] = {
    "rename": lambda ds: ds.alter_columns({"path": "m", "name": "M"}),
    "rename a key": lambda ds: ds.alter_columns({"path": "m.entries.key", "name": "K"}),
    "drop in a value": lambda ds: ds.drop_columns(["s.m.entries.value.u"]),
    "drop the entries": lambda ds: ds.drop_columns(["s.m.entries"]),
    "add": lambda ds: ds.add_columns({"copy": "m", "one": "m is null"}),
    "add NULLs": lambda ds: ds.add_columns(pa.field("n", pa.map_(pa.string(), pa.int8()))),
    "merge": lambda ds: ds.merge(WITH_MAPS.select(["a", "m"]).rename_columns(["a", "n"])[2:4], "a"),
    "cast the column": lambda ds: ds.alter_columns(
        {"path": "m", "data_type": pa.map_(pa.string(), pa.int8())}
    ),
    "never NULL": lambda ds: ds.alter_columns({"path": "m", "nullable": False}),
}
CASTS_IN_MAPS = [
    ("m.entries.value", pa.int8()),
    ("m.entries.key", pa.large_string()),
    ("s.m.entries.value.u", pa.int64()),
]
READ_BY_NOBODY: list[Change] = [
    lambda ds: ds.drop_columns(["m.entries.key"]),
    lambda ds: ds.drop_columns(["m.entries.value"]),
    lambda ds: ds.drop_columns(["s.m.entries.value.u", "s.m.entries.value.w"]),
    lambda ds: ds.alter_columns({"path": "m.entries.key", "nullable": True}),
]


def test_column_changes_within_maps(tmp_path: Path) -> None:
    """What pylance makes of maps, so do we, but for tables that nobody can read; casts are ours alone."""

    def twins(name: str) -> Twins:
        return Twins(tmp_path / name, WITH_MAPS)

    for name, change in OF_MAPS.items():
        pair = twins(name)
        theirs, ours = pair.both(change)
        assert theirs == ours, name
        pair.check()
    for path, data_type in CASTS_IN_MAPS:
        pair = twins(f"cast {path}")
        how = {"path": path, "data_type": data_type}
        assert pair.both(lambda ds: ds.alter_columns(how)) == ("failed", "done")  # noqa: B023
        for module in (lance, pennon):
            dataset: Any = module.dataset(pair.ours.uri)
            dataset.validate()
            assert str(data_type) in str(dataset.schema)
            assert dataset.to_table().to_pylist() == WITH_MAPS.to_pylist()
    done = []
    for number, change in enumerate(READ_BY_NOBODY):
        pair = twins(f"lost {number}")
        theirs, ours = pair.both(change)
        assert ours == "failed"
        assert lance.dataset(pair.ours.uri).to_table().equals(WITH_MAPS)
        if theirs == "done":
            done.append(number)
            with pytest.raises(ValueError, match="Map"):
                lance.dataset(pair.theirs.uri).to_table()
    assert done == [0, 1, 3]
