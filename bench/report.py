"""What `run.py` prints: a table for each group, and the ratios of all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from machine import Limits
from measure import OLD, OURS, PARQUET, THEIRS, Measure, Timed
from rich.console import Console
from rich.table import Table
from startup import ratios_of

GOALS = {
    "scan": 2.0,
    "take 1": 2.0,
    "take 100": 3.0,
    "filter keeps 0.1 %": 1.5,
    "filter keeps 1 %": 1.5,
    "filter keeps 50 %": 1.5,
    "filtered count": 1.5,
    "open + first row": 1.0,
}
"""What the geometric mean of the ratios to pylance is to reach."""
OLD_GOALS = {"write": 1.0, "scan": 2.0, "take 100": 3.0}
"""The same for version 0.1."""


def print_group(
    console: Console, title: str, measures: Sequence[Timed], third: str = PARQUET, note: str = ""
) -> None:
    """Print everything of one group; ``third`` is who stands beside both, ``note`` the head of what measures tell."""
    table = Table(title=title, title_justify="left", title_style="bold", width=110)
    table.add_column("")
    notes = (note,) if note else ()
    for head in (OURS, "min–max", THEIRS, "min–max", "ratio", third.capitalize(), "ratio", *notes):
        table.add_column(head, justify="right")
    for each in measures:
        table.add_row(
            f"{each.what}, {each.unit}",
            *spread(each.values[OURS]),
            *spread(each.values[THEIRS]),
            coloured(each.ratio()),
            f"{each.median(third):.2f}" if third in each.values else "",
            coloured(each.ratio(third)) if third in each.values else "",
            *((each.note,) if note else ()),
        )
    console.print(table)


def print_ratios(console: Console, version: str, side: str, measures: Sequence[Measure]) -> None:
    """Print the ratios of all groups: a row each; their mean, the least, how many are below 1."""
    if not measures:
        return
    rows = ratios_by_group(measures, side)
    heads = list(dict.fromkeys(each.what for each in measures))
    title = f"ratios to {side}, version {version}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for head in ("", *heads):
        table.add_column(head, justify="right", max_width=8)
    for group, row in rows.items():
        table.add_row(group, *(coloured(row[head]) if head in row else "" for head in heads))
    table.add_section()
    goals = OLD_GOALS if version == OLD else GOALS
    for name, values in summary(rows, heads, goals).items():
        table.add_row(name, *values)
    console.print(table)


def ratios_by_group(measures: Sequence[Measure], side: str) -> dict[str, dict[str, float]]:
    """Return the ratio of each operation of each group."""
    ratios: dict[str, dict[str, float]] = {}
    for each in measures:
        ratios.setdefault(each.group, {})[each.what] = each.ratio(side)
    return ratios


def summary(
    rows: dict[str, dict[str, float]], heads: Sequence[str], goals: Mapping[str, float]
) -> dict[str, list[str]]:
    """Return the lines below a table of ratios, a value for each operation."""
    columns = [[row[head] for row in rows.values() if head in row] for head in heads]
    return {
        "mean": [coloured(mean(c)) for c in columns],
        "least": [coloured(min(c)) for c in columns],
        "below 1": [f"{sum(ratio < 1 for ratio in c)} of {len(c)}" for c in columns],
        "goal": [f"{goals[head]:.1f}" if head in goals else "" for head in heads],
    }


def mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean: of ratios, no other says the same when they are turned over."""
    return statistics.geometric_mean(ratios)


def print_startup(console: Console, times: Mapping[str, float], limits: Limits) -> None:
    """Print how long programs take to begin, and what the machine can do at best."""
    for name, milliseconds in times.items():
        console.print(f"{name:<40} {milliseconds:8.0f} ms")
    for name, ratio, most in ratios_of(times):
        colour = "green" if ratio <= most else "red"
        console.print(f"{name:<40} [{colour}]{ratio:8.2f}[/{colour}]  at most {most}")
    console.print(
        f"copy of memory {limits.copy / 1e9:.1f} GB/s, cached file {limits.read / 1e9:.1f}"
    )


def spread(values: Sequence[float]) -> tuple[str, str]:
    """Return the median and the range, as text."""
    return f"{statistics.median(values):.2f}", f"{min(values):.2f}–{max(values):.2f}"


def coloured(ratio: float) -> str:
    """Return a ratio in green where we are ahead, in red where not."""
    colour = "green" if ratio >= 1 else "red"
    return f"[{colour}]{ratio:.2f}[/{colour}]"
