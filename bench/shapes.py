"""``make bench-shapes``: tables as they are in use, beside pylance.

Many fragments, many columns, many small appends, deleted rows, operations that change a table, questions
from many threads, and tables in an object store.

Both libraries work on the same files in one process, in turns (A B, B A), and the median of the ratios
counts: above 1 Pennon is faster.  Each figure is given for wall time and for CPU time of the process.
``cold`` is a new handle, whose files are opened; all others ask a handle that answered before.
Pennon makes durable what it writes; *no fsync* is its level ``none``, as pylance has it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from machine import describe_machine
from shapes_changes import measure_operations
from shapes_fragments import measure_appends, measure_fragments
from shapes_object_store import measure_object_store
from shapes_threads import measure_threads
from shapes_wide import measure_deleted, measure_wide
from turns import HEAD, Effort, Figure

TABLES: Final = Path(__file__).parent / "tables"
Found: TypeAlias = Iterator[tuple[str, Figure]]
"""Figures, each with the head of its table."""
GROUPS: Final[dict[str, Callable[[Path, Effort], Found]]] = {
    "fragments": measure_fragments,
    "appends": measure_appends,
    "wide": measure_wide,
    "deleted": measure_deleted,
    "operations": measure_operations,
    "threads": measure_threads,
    "object store": measure_object_store,
}

LEVELS: Final = dict.fromkeys(("appends", "operations"), ("full", "none"))
"""Pennon's durability in groups that commit: pylance never syncs."""


def measure(groups: list[str], effort: Effort) -> Iterator[str]:
    """Yield the lines of the page, and print each figure when it is there."""
    behind = []
    for group, level in ((g, level) for g in groups for level in LEVELS.get(g, ("full",))):
        os.environ["PENNON_DURABILITY"] = level
        with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
            last = ""
            for found, figure in GROUPS[group](Path(folder), effort):
                head = found if level == "full" else f"{found}, no fsync"
                if head != last:
                    yield from ("", f"## {head}", "", HEAD)
                    print(f"\n{head}", flush=True)
                last = head
                yield figure.line()
                print(figure.line(), flush=True)
                if figure.wall < 1:
                    behind.append(f"- {head}, {figure.name}: {figure.wall:.2f}")
    yield from ("", "## Where Pennon is slower", "", *(behind or ["Nowhere in this run."]))


def main() -> None:
    """Measure, and print; ``--save`` leaves the page in ``bench/tables/shapes.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, fewer turns")
    parser.add_argument("--group", action="append", choices=GROUPS, help="only this")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    effort = Effort(runs=3, share=10) if options.quick else Effort()
    lines = ["# Tables as they are in use", "", describe_machine("pylance", "pyarrow", "numpy")]
    lines += ["", (__doc__ or "").partition("\n\n")[2].strip()]
    lines += measure(options.group or list(GROUPS), effort)
    if options.save:
        (TABLES / "shapes.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
