"""Errors for misspelt names and arguments suggest the nearest, in the words of the API."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.near_names import did_you_mean, near_names


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    """A table of numbers, words and vectors."""
    vectors = np.random.default_rng(1).normal(size=(300, 4)).astype("float32")
    rows = pa.table(
        {
            "id": range(300),
            "price": np.arange(300.0),
            "word": ["a"] * 300,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4),
        }
    )
    return pennon.write_dataset(rows, str(tmp_path / "t.lance"))


def test_nearest_name_is_suggested_ignoring_case() -> None:
    assert did_you_mean("PRISE", ["word", "Price"]) == "; did you mean 'Price'?"
    assert did_you_mean("nothing", ["word", "price"]) == ""
    assert near_names("lengthx", ["left", "length", "word"]) == ["length"]


ZERO = [0.0] * 4
CALLS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "a column in a filter": (
        lambda t: t.to_table(filter="prise > 3"),
        ValueError,
        r"there is no column 'prise'; did you mean 'price'\?",
    ),
    "a column in an expression": (
        lambda t: t.to_table(columns={"x": "prise + 1"}),
        ValueError,
        r"no column 'prise'; did you mean 'price'\?",
    ),
    "a column that is far from all": (
        lambda t: t.to_table(filter="zzz > 3"),
        ValueError,
        "there is no column 'zzz'; there are id, price, word, vec",
    ),
    "a projected column": (
        lambda t: t.to_table(columns=["prise"]),
        ValueError,
        r"no column named 'prise'; the columns are: .*; did you mean 'price'\?",
    ),
    "a column in a delete": (
        lambda t: t.delete("wrd = 'a'"),
        ValueError,
        r"no column 'wrd'; did you mean 'word'\?",
    ),
    "a column in an update": (
        lambda t: t.update({"wrd": "'a'"}),
        ValueError,
        r"no column 'wrd'; did you mean 'word'\?",
    ),
    "a column of vectors": (
        lambda t: t.to_table(nearest={"column": "vce", "q": ZERO}),
        ValueError,
        r"vce is not in the dataset; did you mean 'vec'\?",
    ),
    "an operator without an operand": (
        lambda t: t.to_table(filter="price >> "),
        ValueError,
        r"this is not SQL: a value is missing\. Line 1, Col: 8",
    ),
    "a function": (
        lambda t: t.to_table(filter="lengthx(word) = 1"),
        ValueError,
        "no function 'lengthx'; near it are length",
    ),
    "a filter that is a function": (
        lambda t: t.to_table(filter=lambda batch: batch),
        NotImplementedError,
        "a filter is SQL text or a pyarrow.compute expression, not a value of type function",
    ),
    "an order that is one name": (
        lambda t: t.to_table(order_by="nope"),
        ValueError,
        r"order_by is a list .*order_by=\['nope'\]",
    ),
    "an argument of a vector index": (
        lambda t: t.create_index("vec", "IVF_FLAT", num_partitons=2),
        TypeError,
        r"create_index.*'num_partitons'; did you mean 'num_partitions'\?",
    ),
    "an argument of a scalar index": (
        lambda t: t.create_scalar_index("id", "BTREE", zone_sise=2),
        ValueError,
        r"no zone_sise; did you mean 'zone_size'\?",
    ),
    "an argument of a search": (
        lambda t: t.to_table(nearest={"column": "vec", "q": ZERO, "nprobs": 2}),
        TypeError,
        r"^nearest\(\) got an unexpected keyword argument 'nprobs'; did you mean 'nprobes'\?",
    ),
    "an argument of a search that is far from all": (
        lambda t: t.to_table(nearest={"column": "vec", "xyz": ZERO}),
        TypeError,
        r"^nearest\(\) got an unexpected keyword argument 'xyz'$",
    ),
    "an age that is a number": (
        lambda t: t.cleanup_old_versions(older_than=7),
        TypeError,
        r"older_than is a timedelta, as datetime.timedelta\(days=7\), not 7",
    ),
    "a version to restore": (
        lambda t: t.restore(3),
        TypeError,
        r"takes none: dataset.checkout_version\(3\).restore\(\)",
    ),
    "a path for rows": (
        lambda t: pennon.write_dataset("x.csv", t.uri),
        ValueError,
        "the data to write is the text 'x.csv'; .*pyarrow.csv.read_csv",
    ),
    "a file for rows": (
        lambda t: pennon.write_dataset(Path("x.csv"), t.uri),
        ValueError,
        "the data to write is the text 'x.csv'; ",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_misspelt_names_and_wrong_types_get_a_suggestion(
    table: pennon.LanceDataset, case: str
) -> None:
    call, kind, said = CALLS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=said):
            call(table)
    assert table.latest_version == 1


def test_unknown_index_argument_warns_and_is_ignored(
    table: pennon.LanceDataset,
) -> None:
    with pytest.warns(UserWarning, match="has no zzz"):
        table.create_index("vec", "IVF_FLAT", num_partitions=2, zzz=2)  # type: ignore[call-arg]
