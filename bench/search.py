"""``make bench-search``: Pennon's indices and searches beside pylance and, of vectors, FAISS, in one run.

Each side is a process of its own, and they take turns at every operation.  Pennon and pylance search the same files,
which pylance wrote; both must find the same rows, and where an index only comes near to these, how near each comes
stands beside its time.  A ratio is the other's median over ours: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

import numpy as np
from machine import machine_facts
from measure import HERE, OURS, THEIRS, Worker, save_results
from peers import Home, Missing, Peer, prepare
from report import print_group
from rich.console import Console
from search_bench import FAISS, GroupBench, Search
from search_groups import BUILD, SEARCHED
from search_page import write_search_page

RESULTS = HERE / "results" / "search.json"
PEER = Peer(FAISS, "1.15.1", ("faiss-cpu==1.15.1", f"numpy=={version('numpy')}"))
KINDS = list(dict.fromkeys(kind.name for g in SEARCHED.values() for kind in g.kinds(g.rows)))
OPERATIONS = list(
    dict.fromkeys(
        what
        for group in SEARCHED.values()
        for kind in group.kinds(group.rows)
        for what in (BUILD, *(plan.what for plan in kind.plans))
    )
)


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run found; ``missing`` says why there is no FAISS, "" if there is.

    ``earlier`` has, of each group that an earlier run left, what is said of its machine and commit.
    """

    machine: str
    earlier: Mapping[str, str]
    rows: Mapping[str, int]
    missing: str
    measures: Sequence[Search]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save_results` wrote."""
        saved = json.loads(path.read_text())
        measures = [Search(**each) for each in saved["measures"]]
        return cls(saved["machine"], saved["earlier"], saved["rows"], saved["missing"], measures)


def measure_all(options: argparse.Namespace, console: Console) -> Results:
    """Measure what was chosen, print each kind when it is done."""
    names = options.group or [name for name, group in SEARCHED.items() if not group.is_large]
    home = Missing("it was not asked for") if options.no_faiss else prepare(PEER)
    missing = home.reason if isinstance(home, Missing) else ""
    if missing:
        console.print(f"FAISS is not measured: {missing}")
    found: list[Search] = []
    rows: dict[str, int] = {}
    earlier: dict[str, str] = {}
    if options.keep:
        last = Results.load(options.results)
        found = [each for each in last.measures if each.group not in names]
        rows = {name: count for name, count in last.rows.items() if name not in names}
        earlier = {name: last.earlier.get(name, last.machine) for name in rows}
    with ExitStack() as stack:
        workers = {
            side: stack.enter_context(Worker(side, "search_side.py")) for side in (OURS, THEIRS)
        }
        if isinstance(home, Home):
            faiss = Worker(FAISS, "search_faiss.py", home.python)
            workers[FAISS] = stack.enter_context(faiss)
        for name in names:
            group = SEARCHED[name]
            rows[name] = options.rows or (group.rows // 10 if options.quick else group.rows)
            with tempfile.TemporaryDirectory(prefix="pennon-bench-") as folder:
                data = group.make(rows[name], np.random.default_rng(2013))
                bench = GroupBench(name, data, Path(folder), workers, quick=options.quick)
                for kind in group.kinds(rows[name]):
                    if not options.kind or kind.name in options.kind:
                        its = list(bench.run(kind, options.operation or OPERATIONS))
                        title = f"{name}, {kind.name}"
                        print_group(
                            console, title, its, FAISS, "recall of each" if data.arrays else ""
                        )
                        found += its
    facts = machine_facts("pylance", "pyarrow", "numpy")
    found.sort(key=lambda each: list(SEARCHED).index(each.group))
    return Results(facts, earlier, rows, missing, found)


def page_of(results: Results) -> str:
    """Return the page."""
    faiss = results.missing or f"{PEER.release}, in memory"
    return write_search_page(
        results.machine, results.earlier, results.rows, faiss, results.measures
    )


def choices() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, few repetitions")
    parser.add_argument("--group", action="append", choices=SEARCHED, help="only this")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this")
    parser.add_argument("--operation", action="append", choices=OPERATIONS, help="only this")
    parser.add_argument("--rows", type=int, help="so many rows")
    parser.add_argument("--no-faiss", action="store_true", help="do not install and measure FAISS")
    parser.add_argument("--markdown", type=Path, help="write what was found as a page")
    parser.add_argument("--keep", action="store_true", help="the last run's other groups")
    parser.add_argument("--last", action="store_true", help="of the last run; measure nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the numbers are left")
    return parser.parse_args()


def main() -> None:
    """Measure, print, and leave the numbers in ``bench/results/search.json``."""
    options = choices()
    console = Console()
    console.width = max(console.width, 160)
    started = time.monotonic()
    console.print("ratio: the other / pennon; above 1 Pennon is faster\n")
    results = Results.load(options.results) if options.last else measure_all(options, console)
    save_results(results, options.results)
    if options.markdown:
        options.markdown.write_text(page_of(results))
    console.print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
