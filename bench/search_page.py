"""The page about searches: what `search.py` found, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from measure import OURS, THEIRS
from page import heads, mean_and_least, number, row, section
from search_bench import FAISS, Search

HEAD = """\
# Performance of searches

Written by `make bench-search ARGS="--markdown bench/tables/search.md"`, each group in one run. {machine}
FAISS: {faiss}.

Pennon, pylance and FAISS each run in a process of their own, and take turns at every operation. Files are read from the
system's cache. Times are medians: of 4 to 61 turns, as many as fit into three seconds, and of 1 to 3 builds. A ratio is the
other's median over Pennon's: **above 1 Pennon is faster.** FAISS holds its indices in memory; it has no table and makes no
commit.

- *build* builds an index again and commits it; each side builds on its own table. All searches of
  Pennon and pylance read the same files, which pylance wrote. Both must return the same rows before they are timed.
- *recall* is the share of the 10 nearest rows that 100 queries found, for each measured side, in the order of
  the columns; with *build*, of the side's own index.
- Vectors have 128 numbers, around 500 means. Partitioned indices have about as many partitions as the square root of the
  number of rows, and a query probes 20 of them; PQ has 16 sub-vectors; graphs have one partition, searched with `ef=64`.
- *single query* and all other lookups run one at a time, each with new values; *batch of 100* runs 100 queries in one call,
  five batches in a row.
  *first query after open* opens the table with empty caches. *refined* fetches ten times as many rows and compares
  their vectors. *of 1 % of the rows* has a filter on another column, which has no index.
- Texts have 6 to 23 words of 20,000; the n-th word has the frequency 1 / n. A search asks for ten documents unless its
  name says otherwise.
"""


def write_search_page(
    machine: str,
    earlier: Mapping[str, str],
    rows: Mapping[str, int],
    faiss: str,
    found: Sequence[Search],
) -> str:
    """Return the whole page; ``earlier``: what is said of the machine and commit of groups of an earlier run."""
    lines = [HEAD.format(machine=machine, faiss=faiss)]
    lines += section("In short", summary(found))
    for group in dict.fromkeys(each.group for each in found):
        mine = [each for each in found if each.group == group]
        lines += section(f"{group}: {rows[group]:,} rows, milliseconds", group_table(mine))
        if group in earlier:
            lines += [f"From an earlier run: {earlier[group]}", ""]
    return "\n".join(lines).rstrip() + "\n"


def summary(found: Sequence[Search]) -> Iterator[str]:
    """Yield for each operation of each group the geometric mean of the ratios over the kinds, and the least."""
    yield from heads("", "goal", "/ pylance", "/ FAISS")
    for group, what in dict.fromkeys((each.group, each.what) for each in found):
        mine = [each for each in found if (each.group, each.what) == (group, what)]
        goals = sorted({each.goal for each in mine})
        ratios = [
            [each.ratio(side) for each in mine if side in each.values] for side in (THEIRS, FAISS)
        ]
        yield row(
            f"{group}: {what}",
            " to ".join(map(str, {goals[0]: 0, goals[-1]: 0})),
            *map(mean_and_least, ratios),
        )


def group_table(found: Sequence[Search]) -> Iterator[str]:
    """Yield everything of one group."""
    sides = [side for side in (OURS, THEIRS, FAISS) if any(side in each.values for each in found)]
    notes = ["recall"] if any(each.recall for each in found) else []
    yield from heads("", "", *sides, *(f"/ {side}" for side in sides[1:]), "goal", *notes)
    last = ""
    for each in found:
        times = [number(each.median(side)) if side in each.values else "" for side in sides]
        ratios = [f"{each.ratio(side):.2f}" if side in each.values else "" for side in sides[1:]]
        name = "" if each.kind == last else each.kind
        last = each.kind
        yield row(name, each.what, *times, *ratios, each.goal, *([each.note] if notes else []))
