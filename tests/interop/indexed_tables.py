"""Tables of random histories with indices, made by Pennon and pylance in turns, and conditions on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import lance
import lance.indices
import pyarrow as pa

import pennon
import pennon.indices

Maker: TypeAlias = Any
"""The module `pennon`, or `lance`."""
WORDS = ("", "a", "ab", "apple", "apricot", "banana", "bandana", "Été", "zebra", "日本語", "x" * 40)
LABELS = ("a", "b", "c", "dd")


class Tables:
    """Random rows, and random conditions on them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self._next = 0

    def rows(self, count: int) -> pa.Table:
        """Return the next rows."""
        rng = self.rng
        start, self._next = self._next, self._next + count
        floats = (0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 3.0)

        def some(make: Callable[[], Any]) -> list[Any]:
            return [None if rng.random() < 0.1 else make() for _ in range(count)]

        return pa.table(
            {
                "id": pa.array(range(start, start + count), pa.int64()),
                "i": pa.array(some(lambda: rng.randrange(-5, 60)), pa.int64()),
                "f": pa.array(some(lambda: rng.choice(floats)), pa.float64()),
                "s": pa.array(some(lambda: rng.choice(WORDS)), pa.string()),
                "b": pa.array(some(lambda: rng.random() < 0.5), pa.bool_()),
                "d": pa.array(some(lambda: rng.randrange(18_000, 18_050)), pa.int32()).cast(
                    pa.date32()
                ),
                "l": pa.array(
                    some(lambda: [rng.choice((*LABELS, None)) for _ in range(rng.randrange(4))]),
                    pa.list_(pa.string()),
                ),
                "t": pa.array(some(lambda: " ".join(rng.choices(WORDS, k=3))), pa.string()),
            }
        )

    def leaf(self) -> str:
        """Return a condition on one column."""
        rng = self.rng
        i, j = sorted((rng.randrange(-6, 62), rng.randrange(-6, 62)))
        word, label = rng.choice(WORDS), rng.choice(LABELS)
        return rng.choice(
            (
                f"i = {i}",
                f"i != {i}",
                f"i {rng.choice(('<', '<=', '>', '>='))} {i}",
                f"i BETWEEN {i} AND {j}",
                f"i IN ({i}, {j}, 7, 9, 11)",
                f"i NOT IN ({i}, {j})",
                f"f {rng.choice(('<', '<=', '>', '>=', '=', '!='))} {rng.choice(('0.0', '-0.0', '1.5', '3.0', '-7.5'))}",
                f"s = '{word}'",
                f"s {rng.choice(('<', '>=', '!='))} '{word}'",
                f"s LIKE '{word[:2]}%'",
                f"starts_with(s, '{word[:3]}')",
                f"s IN ('{word}', 'zebra', 'nobody')",
                rng.choice(("b", "NOT b", "b = false", "b IS TRUE", "b IS NOT TRUE")),
                f"d > date '2019-0{rng.randrange(4, 6)}-20'",
                f"array_has(l, '{label}')",
                f"array_has_any(l, ['{label}', 'dd'])",
                f"array_has_all(l, ['{label}', 'a'])",
                f"contains(t, '{word}')",
                f"{rng.choice('ifsbdlt')} IS {rng.choice(('', 'NOT '))}NULL",
                f"id % 3 = {rng.randrange(3)}",
                f"id < {rng.randrange(400)}",
            )
        )

    def condition(self, depth: int = 2) -> str:
        """Return a condition on some columns."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.35:
            return self.leaf()
        if kind < 0.5:
            return f"NOT ({self.condition(depth - 1)})"
        parts = [self.condition(depth - 1) for _ in range(self.rng.randrange(2, 4))]
        return f"({self.rng.choice((' AND ', ' OR ')).join(parts)})"


SMALL_PAGES = ("btree", {"zone_size": 7})
SMALL_ZONES = ("zonemap", {"rows_per_zone": 9})
SMALL_FILTERS = ("bloomfilter", {"number_of_items": 12})
NUMBERS = ("BTREE", SMALL_PAGES, "BITMAP", SMALL_ZONES, SMALL_FILTERS)
KINDS: dict[str, tuple[Any, ...]] = {
    "i": NUMBERS,
    "f": NUMBERS,
    "s": (*NUMBERS, "NGRAM"),
    "b": ("BTREE", "BITMAP"),
    "d": NUMBERS,
    "l": ("LABEL_LIST",),
    "t": ("NGRAM", SMALL_PAGES),
}


def make_index(maker: Maker, folder: str, column: str, kind: Any) -> None:
    """Let Pennon or pylance make an index."""
    if isinstance(kind, tuple):
        kind = maker.indices.IndexConfig(*kind)
    maker.dataset(folder).create_scalar_index(column, kind)


def grow(
    folder: str, tables: Tables, version: str, *, stable: bool, makers: Sequence[Maker]
) -> list[str]:
    """Make a table of a random history, with indices, each step by one of the makers; return the steps."""
    rng = tables.rng
    lance.write_dataset(
        tables.rows(150),
        folder,
        max_rows_per_file=60,
        data_storage_version=version,  # type: ignore[arg-type]
        enable_stable_row_ids=stable,
    )
    columns = rng.sample(sorted(KINDS), rng.randrange(3, 7))
    steps: list[tuple[str, Callable[[Maker], object]]] = [
        *(
            (
                f"index {column}",
                lambda it, c=column: make_index(it, folder, c, rng.choice(KINDS[c])),
            )
            for column in columns
        ),
        (
            "append",
            lambda it: it.write_dataset(tables.rows(rng.randrange(20, 90)), folder, mode="append"),
        ),
        ("delete", lambda it: it.dataset(folder).delete(f"id % 7 = {rng.randrange(7)}")),
        (
            "update i",
            lambda it: it.dataset(folder).update(
                {"i": "i + 1"}, where=f"id % 5 = {rng.randrange(5)}"
            ),
        ),
        (
            "update s",
            lambda it: it.dataset(folder).update(
                {"s": "'new'"}, where=f"id % 11 = {rng.randrange(11)}"
            ),
        ),
        ("compact", lambda it: it.dataset(folder).optimize.compact_files(num_threads=1)),
        (
            "optimize",
            lambda it: it.dataset(folder).optimize.optimize_indices(
                num_indices_to_merge=rng.choice((0, 1, 10))
            ),
        ),
    ]
    rng.shuffle(steps)
    done = []
    for name, step in [*steps, *rng.sample(steps[:], 3)]:
        maker = rng.choice(makers)
        step(maker)
        done.append(f"{name} by {maker.__name__}")
    return done


def ids(table: pa.Table) -> list[int]:
    """Return the ids of rows."""
    found: list[int] = table["id"].to_pylist()
    return found


def differences(folder: str, tables: Tables, conditions: int) -> list[str]:
    """Return where Pennon with indices, Pennon without, and pylance both ways disagree."""
    ours, theirs = pennon.dataset(folder), lance.dataset(folder)
    has_stale = theirs.has_stable_row_ids and any(
        len(each.segments) > 1 for each in theirs.describe_indices()
    )
    wrong = []
    for _ in range(conditions):
        condition = tables.condition()
        plain = ids(ours.to_table(filter=condition, use_scalar_index=False, columns=["id"]))
        found = ours.to_table(filter=condition)
        if ids(found) != plain or ours.count_rows(condition) != len(plain):
            wrong.append(f"{condition}: {len(plain)} without indices, {found.num_rows} with")
        whole = ours.to_table(filter=condition, use_scalar_index=False)
        if str(found.to_pylist()) != str(whole.to_pylist()):
            wrong.append(f"{condition}: the rows are others")
        limited = ours.to_table(filter=condition, limit=5, offset=2, columns=["id"])
        if ids(limited) != plain[2:7]:
            wrong.append(f"{condition}: {ids(limited)} of a limit, not {plain[2:7]}")
        if condition.count("NOT IN") > 1:
            continue  # pylance takes two that exclude one another for true, of NULLs as well
        # with indices it finds updated rows by old values, too, and takes NOT (NULL IS TRUE) for NULL
        is_right = not has_stale and not ("NOT (" in condition and "IS TRUE" in condition)
        for uses in (False, True) if is_right else (False,):
            answer = ids(theirs.to_table(filter=condition, use_scalar_index=uses, columns=["id"]))
            if sorted(answer) != sorted(plain):
                named = "with indices" if uses else "without"
                wrong.append(f"{condition}: {len(plain)} rows, pylance {named} has {len(answer)}")
    return wrong
