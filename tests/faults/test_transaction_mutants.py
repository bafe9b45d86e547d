"""Damaged transactions and indices: a typed error, or a value that can be judged and applied."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from pennon.errors import LanceError
from pennon.table.apply import ApplyContext, apply
from pennon.table.commit.conflict_matrix import judge
from pennon.table.indices_wire import parse_indices, serialize_indices
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import parse_transaction, serialize_transaction
from tests.unit.table.apply.test_apply_operations import table
from tests.unit.table.commit.conflict_table import cells
from tests.unit.table.commit.test_conflict_matrix import index, sample

NAMES = list(dict.fromkeys(other for _, other in cells()))
MUTANTS = 60


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return bytes of which some were changed, taken away, or put in."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(changed) + 1)
        kind = draw.randrange(3)
        if kind == 0 and place < len(changed):
            changed[place] = draw.randrange(256)
        elif kind == 1:
            del changed[place : place + draw.randint(1, 8)]
        else:
            changed[place:place] = draw.randbytes(draw.randint(1, 4))
    return bytes(changed)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_transactions_raise_typed_errors_or_apply(name: str) -> None:
    draw = random.Random(name)
    head = table(4, 4, stable=True)
    data = serialize_transaction(Transaction(2, sample(name, 1)))
    for _ in range(MUTANTS):
        with suppress(LanceError):
            found = parse_transaction(mutated(data, draw))
            judge(sample("update", 1), found.operation)
            judge(found.operation, sample("delete", 1))
            apply(head, found, ApplyContext(1))


def test_damaged_index_sections_raise_typed_errors_or_parse() -> None:
    draw = random.Random(1)
    data = serialize_indices([index("i", 0, *range(40)), index("j", 1, 70000)])
    for _ in range(10 * MUTANTS):
        with suppress(LanceError):
            parse_indices(mutated(data, draw))
