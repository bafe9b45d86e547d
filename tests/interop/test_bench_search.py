"""``make bench-search`` with few rows: all sides find the same rows, and the page has all results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def bench(folder: Path, *words: str) -> tuple[list[dict[str, Any]], str]:
    """Run the bench, and return what it measured, and the page about it."""
    results, page = folder / "results" / "search.json", folder / "page.md"
    program = [sys.executable, str(ROOT / "bench" / "search.py"), "--results", str(results)]
    done = subprocess.run(
        [*program, "--markdown", str(page), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(results.read_text())["measures"], page.read_text()


def test_near_rows_rows_and_texts(tmp_path: Path) -> None:
    groups = ["--group=vectors-100k", "--group=scalars-1m", "--group=text-1m"]
    kinds = ["--kind=exact", "--kind=IVF_FLAT", "--kind=BTREE of int64", "--kind=INVERTED"]
    found, page = bench(tmp_path, "--quick", "--rows=2000", "--no-faiss", *groups, *kinds)
    recalls = {(each["kind"], each["what"]): each["recall"] for each in found if each["recall"]}
    assert all(set(each) == {"pennon", "pylance"} for each in recalls.values())
    assert all(
        share == 1
        for (kind, _), each in recalls.items()
        if kind == "exact"
        for share in each.values()
    )
    assert all(share > 0.8 for each in recalls.values() for share in each.values())
    asked = recalls["IVF_FLAT", "single query"]
    assert asked["pennon"] == asked["pylance"]
    lines = [line for line in page.splitlines() if line.startswith("|")]
    for each in found:
        assert set(each["values"]) == {"pennon", "pylance"}
        assert all(min(times) > 0 for times in each["values"].values())
        assert any(f"| {each['what']} |" in line for line in lines)
    names = {(each["group"], each["what"]) for each in found}
    assert {("vectors-100k", "build"), ("scalars-1m", "merge_insert of 1,000")} <= names
    assert {
        ("text-1m", what) for what in ("phrase", "fuzzy word", "frequent word, top 1,000")
    } <= names
    again, same = bench(tmp_path, "--last")
    assert (again, same) == (found, page)
