"""Plans as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import pennon

NAME = "a\x1b[2J\nb\u202e"


def test_plans_show_no_control_characters_of_names(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2))
    table = pa.table({NAME: [1, 2, 3], "v": vectors, "t\x07": ["a", "b", "c"]})
    dataset: Any = pennon.write_dataset(table, str(tmp_path / "t"))
    dataset.create_scalar_index(NAME, "BTREE")
    dataset.create_scalar_index("t\x07", "INVERTED")
    merge = dataset.merge_insert(NAME).when_matched_update_all()
    scans: list[dict[str, Any]] = [
        {"filter": f"`{NAME}` = 2"},
        {"nearest": {"column": "v", "q": [1.0, 2.0], "k": 2}, "filter": f"`{NAME}` > 1"},
        {"full_text_query": "a"},
    ]
    plans = [dataset.scanner(**each).explain_plan(verbose=True) for each in scans]
    plans += [dataset.scanner(**each).analyze_plan() for each in scans]
    plans += [merge.explain_plan(verbose=True), merge.analyze_plan(table)]
    for plan in plans:
        assert all(line.isprintable() for line in plan.split("\n")), plan
    assert any("a\\x1b[2J\\nb\\u202e" in plan for plan in plans)
