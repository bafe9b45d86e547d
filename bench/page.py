"""The performance page: what `run.py` found, as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from groups import ACCESS, GROUPS
from machine import Limits
from measure import OLD, OLD_OPERATIONS, OPERATIONS, OURS, PARQUET, THEIRS, VERSIONS, Measure
from report import GOALS, OLD_GOALS, mean, ratios_by_group
from startup import ratios_of

HEAD = """\
# Performance

Written by `make bench ARGS="--markdown bench/tables/files.md"`, all of it from one run. {machine}

Pennon, pylance and Parquet (pyarrow) each run in a process of their own, and take turns at every operation,
so that a busy moment of the machine hits all. They read from the system's cache. Times are medians.
A ratio is the other's median over Pennon's: **above 1 Pennon is faster** (or smaller).

- Pennon and pylance read the same table, which pylance wrote. Parquet is one file of the same rows,
  snappy, all options as pyarrow has them.
- *scan* makes an Arrow table; *bytes touched* also reads every byte of it, because a memory-mapped
  column has cost nothing yet.
- *filter keeps 1 %* filters on a column of random numbers and reads all columns of the rows that pass.
  *filtered count* counts the rows that a filter on the group's own type keeps. Parquet gets
  the same filters through `pyarrow.dataset`.
- *write* makes the file durable with Pennon, and not with the others; *write, no fsync* does not with Pennon either
  (`durability="none"`).
- *take 1* and *take 100* take other random rows each time, 50 and 10 times in a row; *alone* takes them
  once, with cold processor caches. Parquet has no take: the row groups that hold the rows
  are read, each once, and the rows taken from those.
- *open + first row* opens the table with empty caches. *peak memory* is how far a scan, batch
  by batch, raises the memory of a fresh process.
- Version 0.1 has a quarter of the rows, and no NULL structs; the columns *ms* hold the
  milliseconds of Pennon and pylance.
- *reads*: the requests that Pennon would send to an object store, in how many rounds, and the bytes per
  row; measured the second time, when the metadata of the files is cached.
"""


def write_page(
    machine: str, limits: Limits, startup: Mapping[str, float], found: Sequence[Measure]
) -> str:
    """Return the whole page."""
    lines = [HEAD.format(machine=machine)]
    lines += section("In short", summary(found))
    old = [each for each in found if each.version == OLD]
    types = [each for each in found if each.group in GROUPS and each.version != OLD]
    for side in (THEIRS, PARQUET):
        for version in VERSIONS:
            mine = [each for each in types if each.version == version]
            lines += section(f"Ratios to {side}, version {version}", ratio_table(mine, side))
    lines += section("Version 0.1, the same bytes: ratios to pylance", old_table(old))
    access = [each for each in found if each.group in ACCESS]
    lines += section("Random access, milliseconds", access_table(access))
    lines += section("Scans and the machine's limits", limit_table(limits, types))
    lines += section("Start-up, milliseconds", startup_table(startup))
    lines += ["## Everything, by group of types\n"]
    for group in dict.fromkeys(each.group for each in types):
        mine = [each for each in types if each.group == group]
        lines += section(group, group_table(mine), level="###")
    return "\n".join(lines).rstrip() + "\n"


def section(title: str, table: Iterator[str], level: str = "##") -> list[str]:
    """Return a table under a title; nothing where there are no rows."""
    rows = list(table)
    return [f"{level} {title}\n", *rows, ""] if len(rows) > 2 else []


def row(*cells: object) -> str:
    """Return one row of a table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def heads(*names: str) -> Iterator[str]:
    """Yield the first two lines of a table; all columns but the first are numbers."""
    yield row(*names)
    yield "|---" + "|---:" * (len(names) - 1) + "|"


def operations_of(found: Sequence[Measure]) -> list[str]:
    """Return the operations that were measured, in their order."""
    known = {each.what for each in found}
    return [what for what in OPERATIONS if what in known]


def summary(found: Sequence[Measure]) -> Iterator[str]:
    """Yield the geometric means over the groups of types, the least ratio, and how many are below 1."""
    types = [each for each in found if each.group in GROUPS and each.version != OLD]
    yield from heads("", "goal", *(f"{side} {v}" for side in (THEIRS, PARQUET) for v in VERSIONS))
    for what in operations_of(types):
        mine = [each for each in types if each.what == what]
        cells = [
            mean_and_least([each.ratio(side) for each in mine if each.version == version])
            for side in (THEIRS, PARQUET)
            for version in VERSIONS
        ]
        yield row(what, GOALS.get(what, ""), *cells)


def mean_and_least(ratios: Sequence[float]) -> str:
    """Return the geometric mean, the least, and how many are below 1, as text."""
    if not ratios:
        return ""
    below = sum(ratio < 1 for ratio in ratios)
    return f"**{mean(ratios):.2f}**, least {min(ratios):.2f}, {below} below 1"


def ratio_table(found: Sequence[Measure], side: str) -> Iterator[str]:
    """Yield the ratios of one version, a row for each group."""
    names = operations_of(found)
    yield from heads("", *names)
    for group, ratios in ratios_by_group(found, side).items():
        yield row(group, *(f"{ratios[what]:.2f}" if what in ratios else "" for what in names))


def old_table(found: Sequence[Measure]) -> Iterator[str]:
    """Yield the ratios of version 0.1, and the times behind them."""
    yield from heads("", *(head for what in OLD_OPERATIONS for head in (what, "ms")))
    if not found:
        return
    by_place = {(each.group, each.what): each for each in found}
    for group in dict.fromkeys(each.group for each in found):
        mine = [by_place.get((group, what)) for what in OLD_OPERATIONS]
        yield row(group, *(text for each in mine for text in ratio_and_times(each)))
    ratios = [[e.ratio() for e in found if e.what == what] for what in OLD_OPERATIONS]
    means = (mean_and_least(its) for its in ratios)
    yield row("mean", *(text for each in means for text in (each, "")))
    yield row("goal", *(text for what in OLD_OPERATIONS for text in (OLD_GOALS[what], "")))


def ratio_and_times(measure: Measure | None) -> tuple[str, str]:
    """Return a ratio, and the medians that it is of."""
    if measure is None:
        return "", ""
    times = f"{number(measure.median(OURS))}, {number(measure.median(THEIRS))}"
    return f"{measure.ratio():.2f}", times


def access_table(found: Sequence[Measure]) -> Iterator[str]:
    """Yield the times of takes, the versions beside each other."""
    sides = (f"{side} {version}" for version in VERSIONS for side in (OURS, THEIRS))
    yield from heads("", "", *sides, PARQUET, f"reads {VERSIONS[-1]}")
    for group in dict.fromkeys(each.group for each in found):
        mine = [each for each in found if each.group == group]
        for at, line in enumerate(by_operation(mine)):
            yield row("" if at else group, *line[: -len(VERSIONS)], line[-1])


def group_table(found: Sequence[Measure]) -> Iterator[str]:
    """Yield everything of one group."""
    sides = (f"{side} {version}" for version in VERSIONS for side in (OURS, THEIRS))
    yield from heads("", *sides, PARQUET, *(f"reads {version}" for version in VERSIONS))
    for line in by_operation(found):
        yield row(*line)


def by_operation(found: Sequence[Measure]) -> Iterator[list[str]]:
    """Yield the operation, the medians of all versions, Parquet's, and what Pennon read for each."""
    for what in operations_of(found):
        known = {each.version: each for each in found if each.what == what}
        line = [f"{what}, {next(iter(known.values())).unit}"]
        for version in VERSIONS:
            each = known.get(version)
            line += [number(each.median(side)) if each else "" for side in (OURS, THEIRS)]
        line.append(number(next(iter(known.values())).median(PARQUET)))
        yield [*line, *(reads_of(known.get(version)) for version in VERSIONS)]


def reads_of(measure: Measure | None) -> str:
    """Return requests, rounds and bytes per row as text."""
    if measure is None or measure.reads is None:
        return ""
    reads = measure.reads
    return f"{reads.requests:,} in {reads.rounds:,}, {reads.bytes / max(reads.rows, 1):,.1f} B"


def limit_table(limits: Limits, found: Sequence[Measure]) -> Iterator[str]:
    """Yield how fast scans are, as Arrow bytes a second, and their share of copying memory."""
    yield from heads("", *(f"{what} {v}" for v in VERSIONS for what in ("GB/s", "of a copy")))
    yield row("copy of memory", *speed_and_share(limits.copy, limits) * len(VERSIONS))
    yield row("read of a cached file", *speed_and_share(limits.read, limits) * len(VERSIONS))
    for what in ("scan", "scan, bytes touched"):
        scans = [each for each in found if each.what == what]
        for group in dict.fromkeys(each.group for each in scans):
            mine = [each for each in scans if each.group == group]
            speeds = {each.version: each.arrow_bytes / each.median(OURS) * 1e3 for each in mine}
            cells = [speed_and_share(speeds.get(version, 0), limits) for version in VERSIONS]
            yield row(f"{what}: {group}", *(text for pair in cells for text in pair))


def speed_and_share(speed: float, limits: Limits) -> tuple[str, str]:
    """Return bytes a second in GB, and as a share of what copying does."""
    return (f"{speed / 1e9:.1f}", f"{speed / limits.copy:.0%}") if speed else ("", "")


def startup_table(times: Mapping[str, float]) -> Iterator[str]:
    """Yield how long programs take, whole processes, and the ratios that matter."""
    yield from heads("", "", "at most")
    for name, milliseconds in times.items():
        yield row(f"`{name}`", f"{milliseconds:.0f}", "")
    for name, ratio, most in ratios_of(times):
        yield row(name, f"{ratio:.2f}", most)


def number(value: float) -> str:
    """Return a number with three digits, or as many as it has before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
