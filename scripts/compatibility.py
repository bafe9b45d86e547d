"""Try tables of many releases of Lance, and write docs/compatibility.md: what was tried, with commit and date.

``make compatibility`` runs it, in some minutes; it needs the other releases (``scripts/setup.sh old-oracles``).  Two things
are tried for each release and file version: the release uses a table that Pennon wrote, and Pennon uses one that the release wrote.
Then Pennon uses the tables of old releases that the tests keep, and programs show faults of other releases.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import compatibility_faults  # noqa: E402 - scripts are no package
import compatibility_golden  # noqa: E402

import pennon  # noqa: E402
from tests.interop.oracle import Oracle, OracleError, interpreter  # noqa: E402

PAGE = ROOT / "docs" / "compatibility.md"
START, END = "<!-- written by scripts/compatibility.py -->\n", "<!-- end -->\n"
RELEASES = (
    "0.7.5",
    "0.8.14",
    "0.10.18",
    "0.15.0",
    "0.19.2",
    "1.0.4",
    "2.0.1",
    "4.0.2",
    "8.0.1",
    "14.0.2",
)
VERSIONS = ("0.1", "2.0", "2.1", "2.2")
USED = """A release of pylance does eight operations with a table that Pennon wrote at a file version: count, scan, columns, filter, take,
append, delete, add columns. Pennon checks the rows after each change. Tables of 0.1 have the old names of manifests
(`enable_v2_manifest_paths=False`), which the releases up to 0.15 need."""
CHANGED = """Pennon does nine operations with a table that the release wrote: scan, filter, take, append, delete, update, merge, compact;
then the release reads all of it again."""
NOT_THERE = "the release has no such file version, or no such call"
Outcome = str | None
"""None where an operation works, else the reason that it does not."""


def rows_of(version: str, start: int = 0) -> pa.Table:
    """Return twelve rows of the types that a file version holds; 0.1 keeps no NULLs."""
    numbers = range(start, start + 12)
    columns: dict[str, Any] = {
        "id": pa.array(numbers, pa.int64()),
        "ratio": pa.array([n / 4 for n in numbers], pa.float64()),
        "word": [f"word {n}" for n in numbers],
        "flag": [n % 2 == 0 for n in numbers],
        "at": pa.array([n * 1_000_000 for n in numbers], pa.timestamp("us")),
        "vector": pa.array([[float(n), 1.0] for n in numbers], pa.list_(pa.float32(), 2)),
    }
    if version != "0.1":
        columns["some"] = pa.array([n if n % 3 else None for n in numbers], pa.int32())
        columns["list"] = pa.array(
            [[n, n] if n % 4 else None for n in numbers], pa.list_(pa.int32())
        )
    if version in ("2.1", "2.2"):
        kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
        columns["struct"] = pa.array([{"a": n, "b": "x"} if n % 5 else None for n in numbers], kind)
    if version == "2.2":
        columns["map"] = pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int32()))
    return pa.table(columns)


def same(found: pa.Table, wanted: pa.Table) -> None:
    """Raise ValueError if two tables differ in a value; the order of rows and of columns does not count."""
    given = found.select(wanted.schema.names).sort_by("id").to_pylist()
    if given != wanted.sort_by("id").to_pylist():
        raise ValueError("other rows")


def tried(steps: Mapping[str, Callable[[], object]]) -> dict[str, Outcome]:
    """Run steps in order; return the reason of each that fails."""
    found: dict[str, Outcome] = {}
    for name, step in steps.items():
        try:
            step()
            found[name] = None
        except (OracleError, Exception) as error:  # noqa: BLE001 - each is a result
            found[name] = f"`{' '.join(str(error).replace('`', '').split())[:120]}`"
    return found


def steps_of_release(
    oracle: Oracle, uri: str, version: str, before: pa.Table
) -> dict[str, Callable[[], object]]:
    """Return what a release does to a table with the rows ``before``; each change is read by Pennon."""
    more = rows_of(version, 100)
    state = {"rows": before}

    def check() -> None:
        same(pennon.dataset(uri).to_table(), state["rows"])

    def append() -> None:
        oracle.write(uri, more, mode="append")
        state["rows"] = pa.concat_tables([state["rows"], more])
        check()

    def delete() -> None:
        oracle.call("delete", uri=uri, predicate="id = 7")
        kept = [n for n, each in enumerate(state["rows"]["id"].to_pylist()) if each != 7]
        state["rows"] = state["rows"].take(kept)
        check()

    def add() -> None:
        oracle.call("add_columns", uri=uri, expressions={"twice": "id * 2"})
        check()

    def counted() -> None:
        if oracle.call("count", uri=uri) != before.num_rows:
            raise ValueError("another number of rows")

    return {
        "count": counted,
        "scan": lambda: same(oracle.scan(uri), before),
        "columns": lambda: same(
            oracle.scan(uri, columns=["id", "word"]), before.select(["id", "word"])
        ),
        "filter": lambda: same(oracle.scan(uri, filter="id >= 10"), before.slice(9)),
        "take": lambda: same(oracle.take(uri, [0, 5, 10]), before.take([0, 5, 10])),
        "append": append,
        "delete": delete,
        "add columns": add,
    }


def steps_of_pennon(
    oracle: Oracle, uri: str, version: str, before: pa.Table
) -> dict[str, Callable[[], object]]:
    """Return what Pennon does to a table that a release wrote; the release reads the end of it."""
    ids = ["id"]
    new = rows_of(version, 200)

    def read_by_release() -> None:
        same(oracle.scan(uri, columns=ids), pennon.dataset(uri).to_table(columns=ids))
        same(oracle.scan(uri), pennon.dataset(uri).to_table())

    def compact() -> object:
        return pennon.dataset(uri).optimize.compact_files()

    def merge() -> object:
        builder = pennon.dataset(uri).merge_insert("id")
        return (
            builder.when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(rows_of(version, 5))
        )

    return {
        "scan": lambda: same(pennon.dataset(uri).to_table(), before),
        "filter": lambda: same(pennon.dataset(uri).to_table(filter="id >= 10"), before.slice(10)),
        "take": lambda: same(pennon.dataset(uri).take([0, 5, 11]), before.take([0, 5, 11])),
        "append": lambda: pennon.dataset(uri).insert(new),
        "delete": lambda: pennon.dataset(uri).delete("id = 7"),
        "update": lambda: pennon.dataset(uri).update({"word": "upper(word)"}, where="id = 3"),
        "merge": merge,
        "compact": compact,
        "read again": read_by_release,
    }


def written_by(oracle: Oracle, uri: str, version: str) -> bool:
    """Let a release write a table at a file version; return whether it can."""
    for options in ({"data_storage_version": version}, {"data_storage_version": "legacy"}, {}):
        try:
            oracle.write(uri, rows_of(version), mode="overwrite", **options)
            if pennon.dataset(uri).data_storage_version == version:
                return True
        except Exception:  # noqa: BLE001 - the next options, or another way to say no
            continue
    return False


def cells_of(
    release: str, folder: Path
) -> Iterator[tuple[str, dict[str, Outcome] | None, dict[str, Outcome] | None]]:
    """Yield a file version, what the release does with Pennon's table, and Pennon with the release's."""
    with Oracle.start(release, folder) as oracle:
        for version in VERSIONS:
            ours, own, theirs = (
                str(folder / f"{kind}-{version}.lance") for kind in ("ours", "own", "theirs")
            )
            names = {
                "enable_v2_manifest_paths": version != "0.1"
            }  # the releases up to 0.15 know the old ones
            pennon.write_dataset(rows_of(version), ours, data_storage_version=version, **names)
            pennon.dataset(ours).delete("id = 2")
            before = pennon.dataset(ours).to_table()
            uses = tried(steps_of_release(oracle, ours, version, before))
            if not written_by(oracle, own, version):
                yield version, None if any(uses.values()) else uses, None
                continue
            oracle.call("delete", uri=own, predicate="id = 2")
            can = tried(steps_of_release(oracle, own, version, before))
            uses = {
                name: NOT_THERE if reason and can[name] else reason for name, reason in uses.items()
            }
            written_by(oracle, theirs, version)
            yield version, uses, tried(steps_of_pennon(oracle, theirs, version, rows_of(version)))


def cell(outcomes: dict[str, Outcome] | None) -> str:
    """Return the words of a cell: the operations that work, and those that do not."""
    if outcomes is None:
        return "–"
    failing = [name for name, reason in outcomes.items() if reason not in (None, NOT_THERE)]
    absent = [name for name, reason in outcomes.items() if reason == NOT_THERE]
    works = len(outcomes) - len(failing) - len(absent)
    words = f"**all {works}**" if works == len(outcomes) else f"{works} of {len(outcomes)}"
    notes = [f"fails: {', '.join(failing)}"] if failing else []
    notes += [f"fails in its own table, too: {', '.join(absent)}"] if absent else []
    return f"{words}; {'; '.join(notes)}" if notes else words


def matrix(releases: tuple[str, ...] = RELEASES) -> tuple[list[str], list[str], list[str]]:
    """Return the rows of both tables of releases and file versions, and the reasons of failures."""
    used, changed, reasons = [], [], []
    for release in releases:
        with tempfile.TemporaryDirectory() as folder:
            cells = {version: pair for version, *pair in cells_of(release, Path(folder))}
        used.append(f"| {release} | " + " | ".join(cell(cells[v][0]) for v in VERSIONS) + " |")
        changed.append(f"| {release} | " + " | ".join(cell(cells[v][1]) for v in VERSIONS) + " |")
        for version, pair in cells.items():
            for side, outcomes in zip(("with Pennon's", "wrote"), pair, strict=True):
                found: dict[str, list[str]] = {}
                for name, reason in (outcomes or {}).items():
                    if reason not in (None, NOT_THERE):
                        found.setdefault(reason.replace(folder.strip("/"), "…"), []).append(name)
                reasons += [
                    f"{release} {side} {version}, {', '.join(names)}: {reason}"
                    for reason, names in found.items()
                ]
        print(release, file=sys.stderr)
    return used, changed, reasons


def stamp() -> str:
    """Return the sentence that says what was tried, when and where."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    day = datetime.now(UTC).date().isoformat()
    python = ".".join(map(str, sys.version_info[:3]))
    return f"Tried on {day} with commit `{commit.stdout.strip()}`, Python {python} and pyarrow {pa.__version__}, on {sys.platform}."


def page(text: str) -> str:
    """Return the page with its tables made anew."""
    head = "| release | " + " | ".join(VERSIONS) + " |\n|---|" + "---|" * len(VERSIONS)
    faults = compatibility_faults.parts(interpreter)
    used, changed, reasons = matrix()
    parts = [
        stamp(),
        "## Tables of Pennon in other releases",
        USED,
        "\n".join([head, *used]),
        "## Tables of other releases in Pennon",
        CHANGED,
        "\n".join([head, *changed]),
        *(
            ["Reasons of what fails:", "\n".join(f"- {each}" for each in reasons)]
            if reasons
            else []
        ),
        *compatibility_golden.parts(),
        *faults,
    ]
    begin, end = text.index(START) + len(START), text.index(END)
    return text[:begin] + "\n\n".join(parts) + "\n" + text[end:]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
