"""Whether a transaction may be committed on top of one that it did not know of.

The rules are a table: a row for each operation that Pennon makes, a column for each that another
writer may have committed since this one read the table.

====  ==========================================================================================
.     compatible: both make sense, one after the other
r     retryable: to do the whole operation again on the newest version can succeed
X     incompatible: the operation makes no sense any more
k     X where both change the same key of the table's config, else the second letter
====  ==========================================================================================

An operation that is not in the table, on either side, is incompatible, and so is one whose
transaction nobody kept: never guess.

Source: `protos/transaction.proto`; conflict matrix measured against pylance 14.0.2 (ledger F-48,
F-53).  Two overwrites are retryable there, though late-2025 sources let the second pass.
"""

from __future__ import annotations

from enum import Enum

from pennon.errors import ConflictError, FormatError, IncompatibleConflict, RetryableConflict
from pennon.table.transaction import (
    Transaction,
    config_keys,
    operation_name,
    parse_transaction,
)


class Verdict(Enum):
    """What stands between two transactions."""

    COMPATIBLE = "."
    RETRYABLE = "r"
    INCOMPATIBLE = "X"


_RULES = """
                      append  overwrite
append                .       .
delete                .       .
overwrite             X       kr
create_index          .       .
rewrite               .       .
merge                 .       .
restore               X       .
reserve_fragments     .       .
update                .       .
project               .       .
update_config         .       k.
data_replacement      .       .
update_mem_wal_state  X       X
clone                 .       .
update_bases          .       .
"""
"""A line for each operation of the other writer, a column for each of ours."""


def _read_rules(text: str) -> dict[tuple[str, str], str]:
    header, *lines = (line.split() for line in text.strip().splitlines())
    return {
        (mine, other): rule
        for other, *rules in lines
        for mine, rule in zip(header, rules, strict=True)
    }


RULES = _read_rules(_RULES)
"""(our operation, the other's) → the letters of the rule."""


def judge(mine: Transaction, other: Transaction) -> Verdict:
    """Say whether ``mine`` can follow ``other``, which was committed after our read version."""
    names = (operation_name(mine.operation), operation_name(other.operation))
    rule = RULES.get(names, "X")
    if rule.startswith("k"):
        if config_keys(mine.operation) & config_keys(other.operation):
            return Verdict.INCOMPATIBLE
        rule = rule[1:]
    return Verdict(rule)


def check_compatible(mine: Transaction, other: bytes | None, version: int) -> None:
    """Raise the conflict, if there is one, with the transaction that made ``version``.

    ``other`` is that transaction serialized, None if it is lost.
    """
    name = operation_name(mine.operation)
    if other is None:
        message = f"the transaction of version {version} is lost, so {name!r} may conflict with it"
        raise IncompatibleConflict(message)
    try:
        theirs = parse_transaction(other)
        verdict = judge(mine, theirs)
    except FormatError as error:
        message = f"the transaction of version {version} cannot be read: {error}"
        raise IncompatibleConflict(message, other=other) from error
    if verdict is Verdict.COMPATIBLE:
        return
    found = operation_name(theirs.operation) or "an operation that Pennon does not know"
    message = f"Commit conflict for version {version}: this {name} conflicts with {found}"
    conflict: type[ConflictError] = IncompatibleConflict
    if verdict is Verdict.RETRYABLE:
        message += "; try again on the newest version"
        conflict = RetryableConflict
    raise conflict(message, other=other)
