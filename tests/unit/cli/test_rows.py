"""Rows on the command line: formats, conditions, orders, values of every type."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import pennon
from pennon.cli.arguments import parse_names, parse_order
from pennon.errors import AlreadyExistsError, ArgumentError, NoColumnError
from tests.unit.cli.commands import done, from_json, run

DAY = dt.date(2020, 1, 2)
EVERY = pa.table(
    {
        "huge": pa.array([2**64 - 1, None], pa.uint64()),
        "half": pa.array([0.1, float("nan")], pa.float16()),
        "float": pa.array([0.1, float("-inf")], pa.float32()),
        "double": pa.array([1e300, float("inf")]),
        "flag": [True, None],
        "decimal": pa.array([Decimal("1.10"), None], pa.decimal128(20, 2)),
        "text": ["", None],
        "binary": pa.array([b"\x00\xff", None]),
        "date": pa.array([DAY, None], pa.date32()),
        "time": pa.array([3_723_000_001, None], pa.time64("us")),
        "naive": pa.array([-1, None], pa.timestamp("ns")),
        "moment": pa.array([1_500, None], pa.timestamp("ms", "Asia/Tokyo")),
        "span": pa.array([-1_500, None], pa.duration("ms")),
        "list": pa.array([[1, None], None], pa.list_(pa.int8())),
        "vector": pa.array([[0.1, 0.2], None], pa.list_(pa.float32(), 2)),
        "struct": pa.array([{"x": 1, "y": None}, None], pa.struct({"x": pa.int8(), "y": "string"})),
        "map": pa.array([[("k", 1)], None], pa.map_("string", pa.int8())),
        "choice": pa.array(["u", None]).dictionary_encode(),
    }
)
PLAIN = {
    "huge": 2**64 - 1,
    "half": 0.1,
    "float": 0.1,
    "double": 1e300,
    "flag": True,
    "decimal": "1.10",
    "text": "",
    "binary": "AP8=",
    "date": "2020-01-02",
    "time": "01:02:03.000001",
    "naive": "1969-12-31T23:59:59.999999999",
    "moment": "1970-01-01T00:00:01.5Z",
    "span": "-PT1.5S",
    "list": [1, None],
    "vector": [0.1, 0.2],
    "struct": {"x": 1, "y": None},
    "map": [{"key": "k", "value": 1}],
    "choice": "u",
}
NOT_A_NUMBER = {"half": "NaN", "float": "-Infinity", "double": "Infinity"}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("rows") / "every.lance")
    pennon.write_dataset(EVERY, uri, data_storage_version="2.2")
    return uri


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("rows") / "numbers.lance")
    rows = pa.table({"n": [3, 1, None, 2], "even, or odd": ["o", "o", None, "e"]})
    pennon.write_dataset(rows, uri, max_rows_per_file=3)
    return uri


def test_values_of_every_type_in_json(every: str) -> None:
    first, second = from_json("head", every)
    assert first == PLAIN
    assert second == {**dict.fromkeys(PLAIN), **NOT_A_NUMBER}


def test_values_of_every_type_on_a_table_for_people(every: str) -> None:
    shown = done("head", every)
    for part in ("18446744073709551615", "NaN", "NULL", "b'\\x00\\xff'", '{"x": 1, "y": null}'):
        assert part in shown, part


def test_csv_keeps_nulls_apart_from_empty_texts_and_nested_values_as_json(every: str) -> None:
    shown = done("head", every, "-f", "csv")
    assert shown.splitlines()[0] == ",".join(PLAIN)
    lines = shown.splitlines()
    assert '"",' in lines[1]
    assert '"{""x"": 1, ""y"": null}"' in lines[1]
    assert ",,," in lines[2]
    found = pa.csv.read_csv(BytesIO(shown.encode()))
    assert found["huge"].to_pylist() == [2**64 - 1, None] or found["huge"].type == pa.float64()
    assert json.loads(found["map"].to_pylist()[0]) == PLAIN["map"]


def test_json_lines_have_a_row_each(every: str) -> None:
    rows = [json.loads(line) for line in done("head", every, "-f", "jsonl").splitlines()]
    assert rows[0] == PLAIN
    assert len(rows) == 2


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather"])
def test_export_keeps_types_in_binary_formats(numbers: str, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"out.{suffix}"
    done("export", numbers, str(file))
    if suffix == "parquet":
        found = pq.read_table(file)
    elif suffix == "arrows":
        found = pa.ipc.open_stream(pa.memory_map(str(file))).read_all()
    else:
        found = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    assert found.equals(pennon.dataset(numbers).to_table())


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv"])
def test_exported_texts_come_back_by_ingest(numbers: str, tmp_path: Path, suffix: str) -> None:
    file, uri = str(tmp_path / f"out.{suffix}"), str(tmp_path / "back.lance")
    done("export", numbers, file)
    done("ingest", file, uri)
    assert pennon.dataset(uri).to_table().equals(pennon.dataset(numbers).to_table())


def test_export_to_stdout_needs_a_format(numbers: str) -> None:
    assert json.loads(done("export", numbers, "-", "-f", "json", "-n", "1", "-c", "n")) == [
        {"n": 3}
    ]


def test_export_leaves_a_file_that_is_there_and_no_part_of_one_that_failed(
    numbers: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.csv"
    file.write_text("mine")
    assert isinstance(run("export", numbers, str(file)).exception, AlreadyExistsError)
    assert run("export", numbers, str(file), "--overwrite", "-w", "nix = 1").exception
    assert [each.name for each in tmp_path.iterdir()] == ["out.csv"]
    assert file.read_text() == "mine"
    done("export", numbers, str(file), "--overwrite", "-c", "n")
    assert file.read_text() == "n\n3\n1\n\n2\n"


def test_output_of_head_takes_the_format_of_its_suffix(numbers: str, tmp_path: Path) -> None:
    file = tmp_path / "two.jsonl"
    assert done("head", numbers, "-n", "2", "-c", "n", "-o", str(file)) == ""
    assert file.read_text() == '{"n": 3}\n{"n": 1}\n'


@pytest.mark.parametrize(
    "words", [("--json", "-f", "csv"), ("-o", "x.docx"), ("-o", "x.csv", "-f", "table")]
)
def test_contradicting_formats_are_refused(numbers: str, words: tuple[str, ...]) -> None:
    assert isinstance(run("head", numbers, *words).exception, ArgumentError)


def test_head_and_tail_with_conditions_and_orders(numbers: str) -> None:
    def rows(command: str, *words: str) -> list[int | None]:
        return [each["n"] for each in from_json(command, numbers, "-c", "n", *words)]

    assert rows("head") == [3, 1, None, 2]
    assert rows("head", "--order-by", "n") == [1, 2, 3, None]
    assert rows("head", "--order-by", "n desc nulls first", "-n", "2") == [None, 3]
    assert rows("head", "--order-by", '"even, or odd" desc, n') == [1, 3, 2, None]
    assert rows("head", "--where", "n > 1") == [3, 2]
    assert rows("tail", "-n", "2") == [None, 2]
    assert rows("tail", "-n", "2", "--order-by", "n") == [3, None]
    assert rows("tail", "-n", "1", "--where", "n > 1") == [2]
    assert rows("tail", "-n", "9") == [3, 1, None, 2]


def test_names_with_commas_stand_in_quotes(numbers: str) -> None:
    assert from_json("head", numbers, "-n", "1", "-c", '"even, or odd"') == [{"even, or odd": "o"}]
    assert parse_names('a,"b""c,d" , e') == ["a", 'b"c,d', "e"]
    with pytest.raises(ArgumentError, match="double quote is not closed"):
        parse_names('a,"b')
    with pytest.raises(ArgumentError, match="is no direction"):
        parse_order('"a" upwards')


def test_sample_with_a_seed_is_the_same_again(numbers: str) -> None:
    first = from_json("sample", numbers, "-n", "2", "--seed", "7")
    assert from_json("sample", numbers, "-n", "2", "--seed", "7") == first
    every = from_json("sample", numbers, "-n", "99", "--order-by", "n", "-c", "n")
    assert [each["n"] for each in every] == [1, 2, 3, None]
    assert len(from_json("sample", numbers, "--where", "n > 1")) == 2


def test_rows_of_an_empty_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(
        pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int8()))]).empty_table(), uri
    )
    for command in ("head", "tail", "sample"):
        assert from_json(command, uri) == []
        assert done(command, uri, "-f", "csv") == "a,b\n"
        assert done(command, uri, "-f", "jsonl") == ""
    assert from_json("stats", uri, "--values")["columns"][0]["min"] is None
    assert from_json("fragments", uri) == []


def test_rows_of_a_table_without_columns(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(pa.table({"a": [1, 2]}), uri)
    ds.alter_columns({"path": "a", "name": "b"})
    pennon.write_dataset(pa.table({}), str(tmp_path / "none.lance"))
    none = str(tmp_path / "none.lance")
    assert from_json("head", none) == []
    assert from_json("schema", none)["columns"] == []
    assert from_json("info", none)["rows"] == 0
    assert "without columns" in done("head", none)


def test_blobs_are_descriptions_or_bytes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table([pennon.blob_array([b"abc", None])], pa.schema([pennon.blob_field("b")]))
    pennon.write_dataset(rows, uri, data_storage_version="2.2")
    first, second = from_json("head", uri)
    assert (first["b"]["size"], second["b"]) == (3, None)
    assert from_json("head", uri, "--blobs", "bytes") == [{"b": "YWJj"}, {"b": None}]
    assert from_json("tail", uri, "-n", "1", "--blobs", "bytes") == [{"b": None}]
    done("blob", uri, "b", "--row", "0", "-o", str(tmp_path / "cell"))
    assert (tmp_path / "cell").read_bytes() == b"abc"
    assert run("blob", uri, "b", "--row", "1", "-o", str(tmp_path / "none")).exception
    assert not (tmp_path / "none").exists()


def test_blob_of_a_row_that_a_condition_finds(every: str, tmp_path: Path) -> None:
    where = ("--where", "text = ''")
    assert done("blob", every, "text", *where, "-o", str(tmp_path / "a")).endswith("0 bytes\n")
    for words in (("flag", *where), ("binary", "--where", "text = 'nix'"), ("binary",)):
        assert run("blob", every, *words, "-o", str(tmp_path / "b")).exception, words
    assert not (tmp_path / "b").exists()


def test_unknown_columns_are_named_in_the_error(numbers: str) -> None:
    error = run("head", numbers, "-c", "nix").exception
    assert isinstance(error, (ArgumentError, NoColumnError))
    assert "nix" in str(error)


def test_extension_types_show_their_values(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    bfloats = pa.field("b", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    columns = [
        pa.array([b"\xc0\x3f", None], pa.binary(2)),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None])),
        pa.array([b"\1" * 16, None], pa.uuid()),
    ]
    fields = [bfloats, pa.field("j", pa.json_()), pa.field("u", pa.uuid())]
    pennon.write_dataset(pa.table(columns, pa.schema(fields)), uri, data_storage_version="2.2")
    first = {"b": 1.5, "j": '{"a":1}', "u": "01010101-0101-0101-0101-010101010101"}
    assert from_json("head", uri) == [first, dict.fromkeys(first)]
    assert done("head", uri, "-f", "csv").splitlines()[1].startswith('"1.5",')
