"""Little programs, run with pylance and with Pennon: same outcome, or a class of error that fits."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pennon

NUMBERS = pa.table({"a": range(10), "b": [str(n) for n in range(10)]})
Program = Callable[[Any, str], Any]


VERSION = ["2.0"]


@pytest.fixture(params=["2.0", "2.1", "2.2"], autouse=True)
def version(request: pytest.FixtureRequest) -> None:
    """Write at each file version in turn."""
    VERSION[0] = request.param


def _write(module: Any, data: Any, uri: str, **options: Any) -> Any:
    return module.write_dataset(data, uri, data_storage_version=VERSION[0], **options)


def _rows_without_columns() -> pa.RecordBatch:
    nothing = pa.StructArray.from_buffers(pa.struct([]), 5, [None])
    return pa.RecordBatch.from_struct_array(nothing)


def _file(module: Any, uri: str) -> Any:
    with module.file.LanceFileWriter(uri, NUMBERS.schema, version=VERSION[0]) as writer:
        writer.write_batch(NUMBERS)
    return module.file.LanceFileReader(uri)


def _junk(module: Any, uri: str) -> Any:
    Path(uri).write_bytes(b"x" * 100)
    return module.file.LanceFileReader(uri)


def _table_of_junk(module: Any, uri: str) -> Any:
    _write(module, NUMBERS, uri)
    for path in (Path(uri) / "data").iterdir():
        path.write_bytes(path.read_bytes()[:-4] + b"junk")
    return module.dataset(uri).to_table()


def _as_of_pandas(module: Any, uri: str) -> int:
    first = _write(module, NUMBERS, uri)
    _write(module, NUMBERS, uri, mode="append")
    moment = first.versions()[0]["timestamp"] + timedelta(microseconds=1)
    version: int = module.dataset(uri, asof=pd.Timestamp(moment)).version
    return version


def _polars(module: Any, uri: str) -> Any:
    frame = pl.DataFrame({"c": ["x", None], "l": [[1], None], "s": [{"p": 1}, {"p": None}]})
    return _write(module, frame, uri).to_table()


def _pandas(module: Any, uri: str) -> Any:
    frame = pd.DataFrame(
        {
            "a": [1, None],
            "c": pd.Categorical(["u", "v"]),
            "t": pd.Series([pd.Timestamp(2024, 1, 1), None]),
        },
        index=pd.Index([5, 6], name="ix"),
    )
    return _write(module, frame, uri).to_pandas().to_dict()


def _wide(module: Any, uri: str) -> Any:
    table = pa.table({f"c{n}": [n, n + 1] for n in range(500)})
    written = _write(module, table, uri)
    return written.to_table() == table, written.take([1], columns=["c499", "c0"])


PROGRAMS: dict[str, Program] = {
    "reserved name": lambda m, uri: _write(m, pa.table({"_rowid": [1]}), uri),
    "name with a dot": lambda m, uri: _write(m, pa.table({"a.b": [1]}), uri),
    "child with a dot": lambda m, uri: _write(m, pa.table({"s": [{"a.b": 1}]}), uri).to_table(
        columns=["s.`a.b`"]
    ),
    "name twice": lambda m, uri: _write(m, pa.table([[1], [2]], names=["a", "a"]), uri),
    "names": lambda m, uri: _write(
        m, pa.table({"naïve é": [1], "日本": [2], "🦀": [3]}), uri
    ).to_table(columns=["🦀", "日本"]),
    "no columns": lambda m, uri: _write(m, pa.table({}), uri).schema,
    "rows without columns": lambda m, uri: _write(m, _rows_without_columns(), uri),
    "no rows": lambda m, uri: _write(m, NUMBERS.slice(0, 0), uri).to_table(),
    "no batches": lambda m, uri: _write(m, iter([]), uri, schema=NUMBERS.schema).to_table(),
    "all NULL": lambda m, uri: _write(m, pa.table({"n": pa.nulls(3)}), uri).to_table(),
    "empty structs": lambda m, uri: _write(
        m, pa.table({"s": pa.array([{}, {}], pa.struct([]))}), uri
    ).to_table(),
    "metadata of a scan": lambda m, uri: _write(m, NUMBERS, uri).to_table().schema.metadata,
    "column by number": lambda m, uri: _write(m, NUMBERS, uri).to_table(columns=[1]),
    "take one name": lambda m, uri: _write(m, NUMBERS, uri).take([1], columns="a"),
    "take a tuple of names": lambda m, uri: _write(m, NUMBERS, uri).take([1], columns=("b",)),
    "take a series": lambda m, uri: _write(m, NUMBERS, uri).take(pd.Series([3, 1])),
    "take fractions": lambda m, uri: _write(m, NUMBERS, uri).take([1.5]),
    "take from no rows": lambda m, uri: _write(m, NUMBERS.slice(0, 0), uri).take([0]),
    "sample too many": lambda m, uri: _write(m, NUMBERS, uri).sample(11),
    "as of a pandas time": _as_of_pandas,
    "file range": lambda m, uri: _file(m, uri).read_range(3, 4).to_table(),
    "file range beyond": lambda m, uri: _file(m, uri).read_range(8, 4).to_table(),
    "file take beyond": lambda m, uri: _file(m, uri).take_rows([10]).to_table(),
    "file without the column": lambda m, uri: (
        _file(m, uri),
        m.file.LanceFileReader(uri, columns=["z"]),
    ),
    "no file": lambda m, uri: m.file.LanceFileReader(uri),
    "junk": _junk,
    "a table of junk": _table_of_junk,
    "polars": _polars,
    "pandas": _pandas,
    "wide": _wide,
}


def _outcome(program: Program, module: Any, uri: Path) -> Any:
    try:
        return program(module, str(uri))
    except Exception as error:  # noqa: BLE001 - the outcome
        return error


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_outcomes_equal_pylance(name: str, tmp_path: Path) -> None:
    theirs, ours = (
        _outcome(PROGRAMS[name], module, tmp_path / module.__name__) for module in (lance, pennon)
    )
    if isinstance(theirs, Exception):
        builtin = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
        assert isinstance(ours, builtin), f"{ours!r} is no {theirs!r}"
        assert str(ours)
    else:
        assert str(ours) == str(theirs)


def _write_share(share: tuple[str, int]) -> list[pennon.FragmentMetadata]:
    uri, number = share
    made: list[pennon.FragmentMetadata] = pennon.fragment.write_fragments(
        pa.table({"n": range(number * 10, number * 10 + 10)}), uri
    )
    return made


def _read_share(fragment: pennon.LanceFragment) -> int:
    return sum(fragment.to_table()["n"].to_pylist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_write_and_read_fragments(method: str, tmp_path: Path) -> None:
    """The parent has read and written before it forks, so its threads and files are in the way."""
    first = pennon.write_dataset(pa.table({"n": [0] * 10}), tmp_path / "before")
    assert first.to_table().num_rows == 10
    uri = str(tmp_path / "t")
    with multiprocessing.get_context(method).Pool(2) as pool:
        shares = pool.map(_write_share, [(uri, number) for number in range(4)])
        fragments = [fragment for share in shares for fragment in share]
        operation = pennon.LanceOperation.Overwrite(pa.schema([("n", pa.int64())]), fragments)
        table = pennon.LanceDataset.commit(uri, operation)
        sums = pool.map(_read_share, table.get_fragments())
    assert sums == [45, 145, 245, 345]
    assert lance.dataset(uri).to_table()["n"].to_pylist() == list(range(40))


def test_concurrent_appends_by_threads(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    pennon.write_dataset(pa.table({"n": [-1]}), uri)

    def append(number: int) -> None:
        pennon.write_dataset(pa.table({"n": [number]}), uri, mode="append")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(append, range(18)))
    done = lance.dataset(str(uri))
    assert done.version == 19
    assert sorted(done.to_table()["n"].to_pylist()) == list(range(-1, 18))


def test_training_loop_batches_equal_pylance(tmp_path: Path) -> None:
    vectors = np.arange(16 * 1000, dtype=np.float32)
    table = pa.table(
        {
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16),
            "y": pa.array(np.arange(1000) % 7),
        }
    )

    def shapes(module: Any) -> Iterator[tuple[Any, ...]]:
        data = _write(module, table, str(tmp_path / module.__name__), max_rows_per_file=300)
        for batch in data.to_batches(batch_size=64):
            inputs = batch["v"].flatten().to_numpy().reshape(-1, 16)
            yield inputs.shape, float(inputs.sum()), batch["y"].to_numpy().sum()
        stopped = iter(data.to_batches(batch_size=10))
        yield (next(stopped).num_rows,)

    assert list(shapes(pennon)) == list(shapes(lance))


def test_dataset_fragment_scanner_and_transaction_pickle(tmp_path: Path) -> None:
    table = pennon.write_dataset(NUMBERS, tmp_path / "t")
    scanner = table.scanner(columns=["b"], limit=2)
    copies = pickle.loads(pickle.dumps([table, table.get_fragments()[0], scanner]))
    assert [copy.count_rows() for copy in copies] == [10, 10, 2]
    operation = pennon.LanceOperation.Append([table.get_fragments()[0].metadata])
    transaction = pennon.Transaction(1, operation)
    assert pickle.loads(pickle.dumps(transaction)) == transaction
    assert pickle.loads(pickle.dumps(table.read_transaction(1))) == table.read_transaction(1)
