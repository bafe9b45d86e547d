"""Tables of version 0.1: appends to each other's, dictionaries, files of whole row groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, DataLossWarning, UnsupportedError
from tests.interop.oracle import Oracle

LEGACY: dict[str, Any] = {"data_storage_version": "legacy"}


def table_of(start: int, rows: int) -> pa.Table:
    numbers = range(start, start + rows)
    words = pa.array(["x", "y", "z"])
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "t": [f"row {n}" for n in numbers],
            "l": [[n] * (n % 3) for n in numbers],
            "s": [{"a": n / 2, "b": str(n)} for n in numbers],
            "d": pa.DictionaryArray.from_arrays(
                pa.array([n % 3 for n in numbers], pa.int32()), words
            ),
        }
    )


def test_appends_to_0_1_tables_by_both(oracle: Oracle, tmp_path: Path) -> None:
    parts = [table_of(start, 100) for start in range(0, 500, 100)]
    for first in (0, 1):
        uri = tmp_path / str(first)
        for number, part in enumerate(parts):
            mode: Any = "append" if number else "create"
            options = {**LEGACY, "max_rows_per_group": 30}
            if (number + first) % 2:
                oracle.write(uri, part, mode=mode, **options)
            else:
                pennon.write_dataset(
                    part, uri, mode=mode, enable_v2_manifest_paths=False, **options
                )
            wanted = pa.concat_tables(parts[: number + 1])
            for read in (oracle.scan(uri), pennon.dataset(uri).to_table()):
                assert read.to_pylist() == wanted.to_pylist()
        assert pennon.dataset(uri).data_storage_version == "0.1"
        picked = [499, 0, 250, 30, 29]
        ours = pennon.dataset(uri).take(picked)
        assert ours.to_pylist() == oracle.take(uri, picked).to_pylist()
        oracle.call("delete", uri=str(uri), predicate="n % 7 = 0")
        assert pennon.dataset(uri).to_table().to_pylist() == oracle.scan(uri).to_pylist()


def test_dictionaries_of_0_1_tables_in_appends(oracle: Oracle, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    kind = pa.dictionary(pa.int8(), pa.string())
    words = [["b", "a"], ["c", "b"], ["a", "c"]]
    batches = [pa.record_batch([pa.array(each, kind)], ["d"]) for each in words]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    with pytest.raises(ArgumentError, match="another dictionary"):
        pennon.write_dataset(reader, uri, max_rows_per_file=2, **LEGACY)
    pennon.write_dataset(pa.Table.from_batches(batches), uri, max_rows_per_file=2, **LEGACY)
    wanted = [word for each in words for word in each]
    for read in (oracle.scan(uri), pennon.dataset(uri).to_table()):
        assert read.column(0).to_pylist() == wanted
    pennon.write_dataset(pa.table({"d": pa.array(["a", "b"], kind)}), uri, mode="append")
    assert oracle.scan(uri).column(0).to_pylist() == [*wanted, "a", "b"]
    with pytest.raises(ArgumentError, match="'new' is not in the dictionary of the table"):
        pennon.write_dataset(pa.table({"d": pa.array(["new"], kind)}), uri, mode="append")
    assert pennon.dataset(uri).version == 2
    pennon.write_dataset(pa.table({"d": pa.array(["new"], kind)}), uri, mode="overwrite")
    assert oracle.scan(uri).column(0).to_pylist() == ["new"]


def test_files_of_different_dictionaries_are_not_committed(tmp_path: Path) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    made = [
        pennon.LanceFragment.create(
            str(tmp_path), pa.table({"d": pa.array([word], kind)}), mode="create", **LEGACY
        )
        for word in ("a", "b")
    ]
    schema = pa.schema([("d", kind)])
    with pytest.raises(ArgumentError, match="another dictionary"):
        pennon.LanceDataset.commit(str(tmp_path), pennon.LanceOperation.Overwrite(schema, made))
    pennon.LanceDataset.commit(str(tmp_path), pennon.LanceOperation.Overwrite(schema, made[:1]))
    assert pennon.dataset(tmp_path).to_table().column(0).to_pylist() == ["a"]


def test_files_0_1_end_at_row_group_boundaries(newest: Oracle, tmp_path: Path) -> None:
    table = pa.table({"a": range(300)})
    for rows, group in ((100, 64), (100, 1000), (128, 64), (1, 1)):
        if rows == 1:
            table = table.slice(0, 3)
        options = {**LEGACY, "max_rows_per_file": rows, "max_rows_per_group": group}
        newest.write(tmp_path / f"t{rows}.{group}", table, **options)
        pennon.write_dataset(table, tmp_path / f"o{rows}.{group}", **options)
        theirs = newest.call("fragments", uri=str(tmp_path / f"t{rows}.{group}"))
        ours = newest.call("fragments", uri=str(tmp_path / f"o{rows}.{group}"))
        assert ours == theirs


def test_data_loss_warning_at_0_1_counts_all_files(tmp_path: Path) -> None:
    table = pa.table({"a": [1, None] * 50, "b": ["", "x"] * 50})
    with pytest.warns(DataLossWarning) as caught:
        pennon.write_dataset(table, tmp_path, max_rows_per_file=10, **LEGACY)
    (warning,) = caught
    assert "'a': 50 NULLs" in str(warning.message)
    assert "'b': 50 empty values" in str(warning.message)


def test_empty_0_1_table_is_read_and_appended(oracle: Oracle, tmp_path: Path) -> None:
    uri = tmp_path / "t"
    table = pa.table({"a": pa.array([], pa.int32()), "s": pa.array([], pa.string())})
    pennon.write_dataset(table, uri, **LEGACY)
    assert oracle.scan(uri).equals(table)
    pennon.write_dataset(pa.table({"a": pa.array([1], pa.int32()), "s": ["x"]}), uri, mode="append")
    assert oracle.scan(uri).to_pylist() == [{"a": 1, "s": "x"}]


@pytest.mark.parametrize("writer", [lance, pennon], ids=["pylance", "ours"])
def test_columns_of_blobs_are_plain_bytes(writer: Any, tmp_path: Path) -> None:
    """There are no descriptions to show; pylance, which looks for them, reads with "all_binary" only."""
    uri = str(tmp_path / "t")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"a", None, bytes(3000), b"ccc"]
    rows = pa.table({"k": range(4), "b": values, "s": [{"b": value} for value in values]})
    schema = pa.schema([("k", pa.int64()), field, ("s", pa.struct([field]))])
    writer.write_dataset(rows.cast(schema), uri, **LEGACY, max_rows_per_group=3)
    ours, theirs = pennon.dataset(uri), lance.dataset(uri)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    read = theirs.to_table(blob_handling="all_binary").to_pylist()
    assert read == rows.to_pylist() == ours.to_table().to_pylist()
    assert ours.to_table(blob_handling="all_binary").to_pylist() == read
    assert ours.take([3, 0], columns=["b", "k"]).to_pylist() == [
        {"b": b"ccc", "k": 3},
        {"b": b"a", "k": 0},
    ]
    assert ours.to_table(["k"], filter="b IS NULL OR s.b = X'636363'")["k"].to_pylist() == [1, 3]
    assert ours.to_table().to_pandas()["b"].tolist() == ours.scanner().to_pandas()["b"].tolist()
    with pytest.raises(UnsupportedError, match=r"among its rows.*scans and takes"):
        ours.take_blobs("b", indices=[0])
    ours.update({"b": "X'01'"}, where="k = 1")
    ours.delete("k = 0")
    pennon.write_dataset(rows.slice(0, 1).cast(schema), uri, mode="append")
    ours.optimize.compact_files()
    ours = pennon.dataset(uri)
    assert sorted(ours.to_table(["k", "b"]).to_pylist(), key=lambda row: row["k"]) == [
        {"k": 0, "b": b"a"},
        {"k": 1, "b": b"\x01"},
        {"k": 2, "b": values[2]},
        {"k": 3, "b": b"ccc"},
    ]
    ours.validate()


def test_struct_is_null_conditions_at_0_1_equal_pylance(oracle: Oracle, tmp_path: Path) -> None:
    """A struct is never NULL at 0.1, whatever its fields are."""
    deep = [{"a": n, "s": {"b": None if n % 3 else "b"}} for n in range(100)]
    empty = [{"a": None, "s": {"b": None}}] * 100
    rows = pa.table({"n": range(100), "deep": deep, "empty": pa.array(empty, pa.array(deep).type)})
    uris = [tmp_path / "theirs", tmp_path / "ours"]
    oracle.write(uris[0], rows, max_rows_per_group=30, **LEGACY)
    pennon.write_dataset(
        rows, uris[1], max_rows_per_group=30, enable_v2_manifest_paths=False, **LEGACY
    )

    def by_oracle(uri: Path, condition: str) -> list[int]:
        return oracle.scan(uri, filter=condition)["n"].to_pylist()

    def by_us(uri: Path, condition: str) -> list[int]:
        return pennon.dataset(uri).to_table(filter=condition)["n"].to_pylist()

    for name in ("deep", "empty", "deep.s", "empty.s", "deep.s.b", "empty.a"):
        for test in ("IS NULL", "IS NOT NULL"):
            condition = f"{name} {test}"
            theirs, ours = ([scan(uri, condition) for uri in uris] for scan in (by_oracle, by_us))
            assert theirs[0] == theirs[1], condition
            assert ours[0] == ours[1], condition
            if not name.endswith((".a", ".b")):
                assert theirs == ours == [list(range(100)) if "NOT" in test else []] * 2
