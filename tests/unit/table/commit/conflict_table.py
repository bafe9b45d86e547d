"""The expected verdict of every pair of operations, written down apart from the rules.

Two letters a cell: what happens if both touch the same fragment, field, key or name, and if not.
``d`` stands for a rebase of deleted rows.
"""

from __future__ import annotations

EXPECTED = """
                   append delete overwrite create_index rewrite merge restore reserve_fragments update project update_config data_replacement update_bases clone
append             ..     ..     XX        ..           ..      ..    XX      ..                ..     ..      ..            ..               ..           ..
delete             ..     d.     XX        ..           r.      rr    XX      ..                d.     ..      ..            r.               ..           ..
overwrite          ..     ..     Xr        ..           ..      ..    ..      ..                ..     ..      X.            ..               ..           ..
create_index       ..     ..     XX        r.           r.      r.    XX      ..                r.     r.      ..            r.               ..           ..
rewrite            ..     r.     XX        r.           r.      rr    XX      ..                r.     ..      ..            r.               ..           ..
merge              rr     rr     XX        ..           rr      rr    XX      ..                rr     XX      r.            rr               ..           ..
restore            ..     ..     ..        ..           ..      ..    ..      ..                ..     ..      ..            ..               ..           ..
reserve_fragments  ..     ..     XX        ..           ..      ..    XX      ..                ..     ..      ..            ..               ..           ..
update             ..     d.     XX        ..           r.      rr    XX      ..                d.     ..      ..            r.               ..           ..
project            ..     ..     XX        ..           ..      rr    XX      ..                ..     rr      r.            ..               ..           ..
update_config      ..     ..     X.        ..           ..      ..    X.      ..                ..     ..      X.            ..               ..           ..
data_replacement   ..     r.     XX        r.           r.      rr    XX      ..                r.     ..      ..            r.               ..           ..
update_bases       ..     ..     ..        ..           ..      ..    ..      ..                ..     ..      ..            ..               X.           ..
"""


def cells(text: str = EXPECTED) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (mine, other) → (if they meet, if not)."""
    header, *lines = (line.split() for line in text.strip().splitlines())
    return {
        (mine, other): (cell[0], cell[1])
        for mine, *row in lines
        for other, cell in zip(header, row, strict=True)
    }
