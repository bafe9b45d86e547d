"""Text conditions that use an index: those of pylance, and more; the rows are those of a scan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon

TEXTS = [
    *("alpha beta", "it's fine", "alpha", "beta gamma", 'say "hi" now', "a%b_c 100%", ""),
    *("Alpha", None, "gammaray alpha", "abc\\def", "alphx", "İALPHAİ", "xalphaßbeta", "aalph a"),
]
CONDITIONS = (
    "s LIKE 'alpha%'",
    "s LIKE '%alpha'",
    "s LIKE '%alp%bet%'",
    "s LIKE 'alp%bet%'",
    "s LIKE 'alp_a%'",
    "s LIKE 'alpha'",
    "s LIKE '%100\\%%'",
    "s LIKE '%al%'",
    "s NOT LIKE 'alpha%'",
    "s ILIKE '%ALPHA%'",
    "contains(s, 'it''s fine')",
    "contains(s, 'say \"hi\" now')",
    "NOT contains(s, 'alpha')",
    "starts_with(s, 'alpha')",
    "ends_with(s, 'alpha')",
    "regexp_match(s, 'alpha.*')",
    "regexp_match(s, '^alpha$')",
    "regexp_match(s, 'alph[ax] ?beta')",
    "regexp_match(s, 'alphax?')",
    "regexp_match(s, 'gam+aray')",
    "regexp_match(s, '(alpha|gamma)ray')",
    "regexp_match(s, 'alpha|fine')",
    "regexp_match(s, 'alphx{0}a')",
    "regexp_like(s, 'alp.a')",
    "NOT regexp_like(s, 'alpha')",
    "s LIKE 'alpha%' AND s LIKE '%beta'",
    "s LIKE 'alpha' OR s = 'beta gamma'",
    "s = 'alpha'",
    "s IN ('alpha', 'beta gamma')",
    "s IS NULL",
)
ASKED = {
    "NGRAM": [
        *CONDITIONS[:7],
        *CONDITIONS[10:12],
        *CONDITIONS[13:20],
        CONDITIONS[23],
        CONDITIONS[25],
    ],
    "BLOOMFILTER": ["s LIKE 'alpha'", "s = 'alpha'", "s LIKE 'alpha' OR s = 'beta gamma'"],
    "BTREE": ["s LIKE 'alpha%'", "s LIKE 'alp%bet%'", "s LIKE 'alpha'", "starts_with(s, 'alpha')"],
}
LEFT_TO_SCANS = {"regexp_match(s, 'alpha|fine')"}


@pytest.mark.parametrize("kind", ["NGRAM", "BLOOMFILTER", "BTREE", "BITMAP", "ZONEMAP"])
def test_text_conditions_use_scalar_index(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t")
    table = pa.table({"id": range(len(TEXTS)), "s": TEXTS})
    dataset: Any = pennon.write_dataset(table, uri, max_rows_per_file=4)
    expected = {each: dataset.to_table(["id"], filter=each) for each in CONDITIONS}
    dataset.create_scalar_index("s", kind)
    theirs = lance.dataset(uri)
    for condition in CONDITIONS:
        ours, other = (each.scanner(filter=condition).explain_plan() for each in (dataset, theirs))
        if condition not in LEFT_TO_SCANS:
            assert ("s_idx" in ours) >= ("s_idx" in other), condition
        if condition in ASKED.get(kind, ()):
            assert "s_idx" in ours, condition
        assert dataset.to_table(["id"], filter=condition) == expected[condition], condition
        found = theirs.to_table(["id"], filter=condition)
        assert found["id"].to_pylist() == expected[condition]["id"].to_pylist(), condition
