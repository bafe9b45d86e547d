"""Functions of JSON beside pylance: the same values, of the same types, or errors of both."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ExpressionError

MEMBERS = {
    "a": "x",
    "b": 1,
    "c": 1.5,
    "d": True,
    "e": None,
    "f": [1, "q", None, True, 2.0, [3]],
    "g": {"h": [{"i": 1}, {"i": 2}], "k.z": 5},
    "0": 7,
    "sp ace": 1,
    "é": "ü",
    "big": 2**64 - 1,
    "far": 1e300,
}
ROWS = [json.dumps(MEMBERS), '[1, [2, 3], {"a": "in"}]', '"text"', "5", "null", None, "{}"]
PATHS = """
    $.a; $.g; $.f; $.f[1]; $.f[*]; $.g.h[*].i; $.g["k.z"]; $.e; $; $[0]; $[1][0]; $.nope; $.c; $.far
    $.big; $.é; $."sp ace"; $.f[last]; $.f[last - 1]; $.f[0 to 2]; $.f[1 to last]; $.f[0,2]; $.f[-1]
    $.*; a; .a; g.h[0].i; $.g:h; $.f[9]; $..i; $[; $.g.h[?(@.i==2)]
""".replace("\n", ";")
CASTS = """
    "x"; 1; 0; -3; 1.5; -1.5; 2.5; 2.0; true; false; null; [1]; {}; "12"; "true"; "TRUE"; "no"; "Yes"
    "1.5"; "1e3"; " 7"; "1_0"; "y"; "1"; 9223372036854775807; 9223372036854775808; 1e20; 0.1; "é"
""".replace("\n", ";")


def _split(texts: str) -> list[str]:
    return [text.strip() for text in texts.split(";") if text.strip()]


def _outcome(table: Any, text: str) -> pa.ChunkedArray | None:
    """Return what a column is computed to, None if that is an error."""
    wrong = ExpressionError if isinstance(table, pennon.LanceDataset) else (ValueError, OSError)
    try:
        return table.to_table(columns={"r": text}).column(0)
    except wrong:
        return None


def _compare(rows: list[str | None], texts: list[str], name: str) -> None:
    data = pa.table({"id": range(len(rows)), "j": pa.array(rows, pa.json_())})
    theirs = lance.write_dataset(data, f"memory://json-{name}")
    ours = pennon.write_dataset(data, f"memory://json-{name}", mode="overwrite")
    wrong = [text for text in texts if _outcome(ours, text) != _outcome(theirs, text)]
    assert not wrong


@pytest.mark.parametrize("function", ["json_extract", "json_exists", "json_array_length"])
def test_json_path_functions_equal_pylance(function: str) -> None:
    _compare(ROWS, [f"{function}(j, '{path}')" for path in _split(PATHS)], function)


@pytest.mark.parametrize("value", _split(CASTS))
def test_json_values_by_type_equal_pylance(value: str) -> None:
    kinds = ("string", "int", "float", "bool")
    texts = [f"json_get_{kind}(j, 'v')" for kind in kinds]
    _compare([f'{{"v": {value}}}'], [*texts, "json_extract(j, '$.v')", "json_get(j, 'v')"], "casts")


def test_json_keys_and_array_items_equal_pylance() -> None:
    keys = ("a", "f", "0", "1", "+0", "-1", "nope", "é")
    texts = [f"json_get(j, '{key}')" for key in keys]
    texts += ["json_get_string(json_get(json_get(json_get(j, 'g'), 'h'), '1'), 'i')"]
    items = ("'q'", "'1'", "1", "'true'", "true", "'null'", "'2'", "'2.0'", "'[3]'")
    texts += [f"json_array_contains(j, '{p}', {v})" for p, v in product(("$.f", "$", "$.a"), items)]
    _compare(ROWS, texts, "keys")


def test_json_functions_in_conditions() -> None:
    rows = [json.dumps({"user": {"name": name, "age": age}}) for name, age in (("A", 3), ("B", 9))]
    table = pennon.write_dataset(
        {"id": [1, 2, 3], "j": pa.array([*rows, None], pa.json_())}, "memory://c"
    )
    for text, expected in (
        ("json_extract(j, '$.user.name') = '\"A\"'", [1]),
        ("json_get_int(json_get(j, 'user'), 'age') > 5", [2]),
        ("json_exists(j, '$.user.age')", [1, 2]),
        ("json_get(j, 'user') IS NULL", [3]),
    ):
        assert table.to_table(filter=text).column("id").to_pylist() == expected


def test_bad_json_and_deep_json_are_errors() -> None:
    texts = pa.table({"t": ["{", "[" * 100_000]})
    table = pennon.write_dataset(texts, "memory://bad-json")
    for row in (0, 1):
        with pytest.raises(ExpressionError, match="no JSON"):
            table.take([row], columns={"r": "json_extract(t, '$')"})
