"""Whether a transaction may be committed on top of one that it did not know of.

The rules are a table: a row for each operation that this writer wants to commit, a column for each
that another may have committed since this one read the table.  `LETTERS` says what a letter means.
Of some, the two operations have to be looked at: whether they touch the same fragments, fields,
keys or names.

An operation that is not in the table, on either side, is incompatible, and so is one whose
transaction nobody kept: never guess.  Where a rule is stricter than Lance's, that is on purpose: a
writer may always be stricter.

docs/conflicts.md is made from this table.

Source: conflict_resolver.rs of the Lance repository; measured against pylance 14.0.2 (ledger F-364,
F-48, F-53).
"""

from __future__ import annotations

from collections.abc import Mapping

from pennon.table.commit.conflict_rules import LETTERS as LETTERS
from pennon.table.commit.conflict_rules import Verdict as Verdict
from pennon.table.operations import Operation, operation_name

MATRIX = """
                   App  Del  Ovw  Idx  Rew  Mrg  Rst  Rsv  Upd  Prj  Cfg  DRp  Bas  Cln  Mem
append              .    .    X    .    .    p    X    .    .    p    .    .    .    .    X
delete              .    d    X    .    o    r    X    .    d    .    .    o    .    .    X
overwrite           .    .    kr   .    .    .    .    .    .    .    k    .    .    .    X
create_index        .    .    X    n    o1   g    X    .    u    g    .    o2   .    .    X
rewrite             .    o    X    o1   o    r    X    .    o    .    .    o    .    .    X
merge               r    r    X    .    r    r    X    .    r    X    m    r    .    .    X
restore             .    .    .    .    .    .    .    .    .    .    .    .    .    .    X
reserve_fragments   .    .    X    .    .    .    X    .    .    .    .    .    .    .    X
update              .    d    X    .    o    r    X    .    d    p    .    o    .    .    X
project             p    .    X    .    .    r    X    .    p    r    m    p    .    .    X
update_config       .    .    k2   .    .    .    k2   .    .    .    k2   .    .    .    X
data_replacement    .    o    X    o2   o    r    X    .    o    p    .    o3   .    .    X
update_bases        .    .    .    .    .    .    .    .    .    .    .    .    b    .    X
"""
"""A line for each operation of ours, a column for each of the other writer."""

COLUMNS: Mapping[str, str] = {
    "App": "append",
    "Del": "delete",
    "Ovw": "overwrite",
    "Idx": "create_index",
    "Rew": "rewrite",
    "Mrg": "merge",
    "Rst": "restore",
    "Rsv": "reserve_fragments",
    "Upd": "update",
    "Prj": "project",
    "Cfg": "update_config",
    "DRp": "data_replacement",
    "Bas": "update_bases",
    "Cln": "clone",
    "Mem": "update_mem_wal_state",
}


def _read_matrix(text: str) -> dict[tuple[str, str], str]:
    header, *lines = (line.split() for line in text.strip().splitlines())
    return {
        (mine, COLUMNS[other]): letter
        for mine, *letters in lines
        for other, letter in zip(header, letters, strict=True)
    }


RULES = _read_matrix(MATRIX)
"""(our operation, the other's) → the letter of the rule."""


def judge(mine: Operation, other: Operation) -> Verdict:
    """Say whether ``mine`` can follow ``other``, which was committed after our read version."""
    letter = RULES.get((operation_name(mine), operation_name(other)), "X")
    return LETTERS[letter][1](mine, other)
