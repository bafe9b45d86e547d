"""Rows in partitions whose numbers a column says, also in releases of Spark without ``repartitionById``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACED: Final = "_pennon_placed"
_MASK: Final = (1 << 32) - 1


def placed_by_id(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return rows in as many partitions, each row in that of the number in a column, which is 0 or more and below their count.

    Spark before 4.1 only places rows by the hash of a value, so each number is exchanged for one whose hash is right.
    """
    if hasattr(type(rows), "repartitionById"):
        return rows.repartitionById(partitions, column)
    keys = ", ".join(map(str, keys_of_partitions(partitions)))
    name = column.replace("`", "``")
    key = f"element_at(array({keys}), CAST(`{name}` AS INT) + 1) AS {_PLACED}"
    return rows.selectExpr("*", key).repartition(partitions, _PLACED).drop(_PLACED)


def keys_of_partitions(partitions: int) -> list[int]:
    """Return an int for each partition, which Spark's hash partitioning places there.

    >>> keys_of_partitions(3)
    [0, 1, 11]
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(_hash(key) % partitions, key)
        key += 1
    return [found[number] for number in range(partitions)]


def _hash(value: int) -> int:
    """Return Spark's ``hash`` of an int: Murmur3 of its four bytes with the seed 42, as a signed number."""
    mixed = value * 0xCC9E2D51 & _MASK
    mixed = _rotated(mixed, 15) * 0x1B873593 & _MASK
    found = _rotated(42 ^ mixed, 13) * 5 + 0xE6546B64 & _MASK
    found ^= 4
    found = (found ^ found >> 16) * 0x85EBCA6B & _MASK
    found = (found ^ found >> 13) * 0xC2B2AE35 & _MASK
    found ^= found >> 16
    return found - (1 << 32) if found >> 31 else found


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK
