"""Kinds of columns that random programs use: a type, values of it, and how SQL writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

FILE_VERSIONS = ("0.1", "2.0", "2.1", "2.2")
"""Those that programs are made for."""

WORDS = ("a", "ab", "b", "it''s".replace("''", "'"), "ü", "Zebra", "long " * 12)
COLORS = ("red", "green", "blue")
TOKENS = ("red", "green", "blue", "Rot", "lance", "lance2", "zebra", "a")
LABELS = ("a", "b", "c", "dd", "")
EMBEDDING_WIDTH = 8
Value = Callable[[Random, str], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of columns."""

    type: pa.DataType
    make: Value
    nulls: str = "2.0"
    """The first file version that keeps NULLs of it."""
    since: str = "0.1"
    sql: Callable[[Any], str] | None = None
    """How SQL writes a value; None where filters do not compare it."""
    indexed: bool = False
    """Whether only programs with indices have it."""

    def holds_null(self, version: str) -> bool:
        """Tell whether files of a version keep NULLs of this kind."""
        return version >= self.nulls


def _integer(low: int, high: int) -> Value:
    return lambda rng, _: rng.randint(low, high)


def _text(rng: Random, version: str) -> str:
    return rng.choice(WORDS if version == "0.1" else (*WORDS, ""))


def _quoted(value: Any) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _maybe(rng: Random, version: str, first: str, value: Any) -> Any:
    """Return a value, or sometimes NULL where the version keeps that."""
    return None if version >= first and rng.random() < 0.2 else value


def _list_of(item: Value, first: str) -> Value:
    def make(rng: Random, version: str) -> list[Any]:
        return [
            _maybe(rng, version, first, item(rng, version)) for _ in range(rng.choice([0, 1, 2, 5]))
        ]

    return make


def _struct(rng: Random, version: str) -> dict[str, Any]:
    return {
        "x": _maybe(rng, version, "2.0", rng.randint(-9, 9)),
        "y": _maybe(rng, version, "0.1", _text(rng, version)),
    }


def _map(rng: Random, version: str) -> list[tuple[str, Any]]:
    keys = rng.sample(WORDS, rng.choice([0, 1, 3]))
    return [(key, _maybe(rng, version, "2.2", rng.randint(-9, 9))) for key in keys]


def _moment(rng: Random, _: str) -> datetime:
    return datetime(2020, 1, 1) + timedelta(seconds=rng.randrange(10**7), microseconds=7)


def _zoned(rng: Random, version: str) -> datetime:
    return _moment(rng, version).replace(tzinfo=UTC)


def _day(rng: Random, _: str) -> date:
    return date(1999, 12, 28) + timedelta(days=rng.randrange(9))


def _quarters(rng: Random, _: str) -> float:
    return rng.randint(-40, 40) / 4


def _bytes(rng: Random, _: str) -> bytes:
    return rng.randbytes(rng.choice([1, 3, 40]))


def _phrase(rng: Random, _: str) -> str:
    return rng.choice((" ", ", ", " - ")).join(rng.choices(TOKENS, k=rng.choice([0, 1, 2, 4, 7])))


def _labels(rng: Random, _: str) -> list[Any]:
    return [rng.choice((*LABELS, None)) for _ in range(rng.choice([0, 1, 2, 4]))]


def _embedding(rng: Random, _: str) -> list[float]:
    """Return a vector of numbers of which float32 holds sums of squares exactly."""
    return [round(rng.gauss(0, 1) * 64) / 64 for _ in range(EMBEDDING_WIDTH)]


def _bits(rng: Random, _: str) -> list[int]:
    return [rng.randrange(256) for _ in range(EMBEDDING_WIDTH)]


SMALL = _integer(-50, 50)
POSITIVE = _integer(0, 100)
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.string())])
INTEGERS = ("int8", "int16", "int32", "int64")

KINDS: dict[str, Kind] = {
    "int8": Kind(pa.int8(), SMALL, sql=str),
    "int16": Kind(pa.int16(), SMALL, sql=str),
    "int32": Kind(pa.int32(), SMALL, sql=str),
    "int64": Kind(pa.int64(), SMALL, sql=str),
    "uint8": Kind(pa.uint8(), POSITIVE, sql=str),
    "uint32": Kind(pa.uint32(), POSITIVE, sql=str),
    "uint64": Kind(pa.uint64(), POSITIVE, sql=str),
    "float32": Kind(pa.float32(), _quarters, sql=repr),
    "float64": Kind(pa.float64(), _quarters, sql=repr),
    "bool": Kind(
        pa.bool_(), lambda rng, _: rng.random() < 0.5, sql=lambda value: str(value).lower()
    ),
    "string": Kind(pa.string(), _text, "0.1", sql=_quoted),
    "large_string": Kind(pa.large_string(), _text, "0.1", sql=_quoted),
    "binary": Kind(pa.binary(), _bytes, "0.1"),
    "large_binary": Kind(pa.large_binary(), _bytes, "0.1"),
    "fixed_binary": Kind(pa.binary(5), lambda rng, _: rng.randbytes(5)),
    "date": Kind(pa.date32(), _day, sql=lambda value: f"date '{value}'"),
    "timestamp": Kind(pa.timestamp("us"), _moment, sql=lambda value: f"timestamp '{value}'"),
    "zoned": Kind(pa.timestamp("us", "UTC"), _zoned),
    "time": Kind(pa.time64("us"), lambda rng, _: time(rng.randrange(24), 5, 6, 7)),
    "duration": Kind(pa.duration("us"), lambda rng, _: timedelta(microseconds=rng.randrange(999))),
    "decimal": Kind(
        pa.decimal128(10, 2), lambda rng, _: Decimal(rng.randint(-999, 999)).scaleb(-2)
    ),
    "list": Kind(pa.list_(pa.int32()), _list_of(SMALL, "2.0")),
    "texts": Kind(pa.list_(pa.string()), _list_of(_text, "0.1")),
    "large_list": Kind(pa.large_list(pa.int16()), _list_of(SMALL, "2.0")),
    "lists": Kind(
        pa.list_(pa.list_(pa.int32())), _list_of(_list_of(SMALL, "2.0"), "2.0"), since="2.0"
    ),
    "vector": Kind(
        pa.list_(pa.float32(), 3), lambda rng, version: [_quarters(rng, version) for _ in range(3)]
    ),
    "struct": Kind(STRUCT, _struct, "2.1"),
    "structs": Kind(pa.list_(STRUCT), _list_of(_struct, "2.1"), "2.0", since="2.0"),
    "map": Kind(pa.map_(pa.string(), pa.int32()), _map, "2.2", since="2.2"),
    "dictionary": Kind(
        pa.dictionary(pa.int16(), pa.string()), lambda rng, _: rng.choice(WORDS), since="2.0"
    ),
    # a table of version 0.1 has one dictionary for all of its rows
    "colors": Kind(pa.dictionary(pa.int8(), pa.string()), lambda rng, _: rng.choice(COLORS)),
    "phrase": Kind(pa.string(), _phrase, sql=_quoted, since="2.0", indexed=True),
    "labels": Kind(pa.list_(pa.string()), _labels, since="2.0", indexed=True),
    "embedding": Kind(
        pa.list_(pa.float32(), EMBEDDING_WIDTH), _embedding, since="2.0", indexed=True
    ),
    "bits": Kind(pa.list_(pa.uint8(), EMBEDDING_WIDTH), _bits, since="2.0", indexed=True),
}
CASTS: dict[str, tuple[str, ...]] = {
    **{name: tuple(other for other in INTEGERS if other != name) for name in INTEGERS},
    "float32": ("float64",),
    "float64": ("float32",),
    "string": ("large_string",),
    "large_string": ("string",),
    "binary": ("large_binary",),
    "large_binary": ("binary",),
}


def kinds_of(version: str) -> list[str]:
    """Return the kinds that files of a version hold, without those for indices alone."""
    return [name for name, kind in KINDS.items() if version >= kind.since and not kind.indexed]


def random_value(rng: Random, kind: str, version: str, *, nullable: bool) -> Any:
    """Return a value of a kind, NULL now and then if that may be."""
    if nullable and KINDS[kind].holds_null(version) and rng.random() < 0.2:
        return None
    return KINDS[kind].make(rng, version)


def array_of(kind: str, values: Sequence[Any]) -> pa.Array:
    """Return values as an array; that of ``colors`` has always the same dictionary."""
    type_ = KINDS[kind].type
    if kind != "colors":
        return pa.array(values, type_)
    indices = [None if value is None else COLORS.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(COLORS))
