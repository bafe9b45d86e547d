"""Vector indices of five releases: each search of one finds the recorded rows, at the recorded distances.

Searches that ask more than an index (unindexed rows, refining, several vectors a row) are those of `nearest`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pennon.errors import NotFoundError, UnsupportedError
from pennon.index.vector.base import Probes
from tests.golden.archives import unpack
from tests.interop.vector_planner import Searched, same_answers

ARCHIVES = Path(__file__).parent / "vector_indices"
RELEASES = ("0.10.18", "0.15.0", "0.19.2", "1.0.4", "14.0.2")
NOT_ALONE = {"delta_append_delete", "deferred_remap_frag_reuse", "multivector_ivf_pq_cosine"}
"""The index has not all rows, has them where they were, or several times."""
NOT_READ = {"ivf_pq_data_2_3"}
ONLY_WRITER = {
    ("0.10.18", "ivf_hnsw_pq_l2"),
    ("0.15.0", "ivf_pq4_l2"),
    ("0.19.2", "ivf_hnsw_pq_l2"),
}
"""14.0.2 cannot read these."""
MORE_ROWS = {"stable_row_ids_compacted"}
"""14.0.2 returns fewer rows than were asked for, and than there are."""
SEARCHED = {"0.10.18": 28, "0.15.0": 12, "0.19.2": 20, "1.0.4": 52, "14.0.2": 139}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    for release in RELEASES:
        unpack(ARCHIVES / f"{release}.tar.xz", folder)
    return folder


def searches(table: Path) -> Iterator[dict[str, Any]]:
    """Yield the searches that an index alone answers."""
    known = json.loads(Path(str(table).replace(".lance", ".answers.json")).read_text())
    writer = (table.parent.name, table.stem) in ONLY_WRITER
    for search in known["by_writer" if writer else "by_14_0_2"]["searches"]:
        params = search["params"]
        if "error" not in search and "nprobes" in params and "refine_factor" not in params:
            yield search


def names(tables: Path, release: str) -> list[Path]:
    found = sorted((tables / release).glob("*.lance"))
    return [path for path in found if path.stem not in NOT_ALONE | NOT_READ | {"untrained_ivf_pq"}]


@pytest.mark.parametrize("release", RELEASES)
def test_searches_find_the_recorded_rows(tables: Path, release: str) -> None:
    searched = 0
    for path in names(tables, release):
        table = Searched(path)
        for search in searches(path):
            params = search["params"]
            ids, near = table.search(search["q"], params["k"], params["nprobes"], params.get("ef"))
            expected = search["ids"], search["distances"]
            where = path.name, params, search["q"][:2]
            if path.stem in MORE_ROWS:
                assert len(ids) == params["k"] >= len(expected[0])
                ids, near = ids[: len(expected[0])], near[: len(expected[1])]
            if "_rq" in path.name:
                judge_estimates(table, (ids, near), expected, where)
            else:
                assert same_answers((ids, near), expected, 1e-5), (where, ids, near, expected)
            searched += 1
    assert searched == SEARCHED[release]


def judge_estimates(table: Searched, found: Any, expected: Any, where: Any) -> None:
    """The oracle rounds its tables: it finds nearly the same rows, at nearly the same distances."""
    (ids, near), (known, apart) = found, expected
    assert len(set(ids) & set(known)) >= 0.8 * len(known), where
    if "1.0.4" not in str(table.table.uri):
        spread = max(np.ptp(apart), 1.0)
        assert np.abs(np.array(near) - apart).max() < 0.1 * spread, where


@pytest.mark.parametrize(
    ("name", "query", "expected"),
    [
        (
            "tiny_rq3_l2",
            [1, 0, -1, 0.5, 0, 0.25, -0.5, 1],
            [7.2175922, 10.6191578, 9.1993246, 10.0422802],
        ),
        (
            "tiny_rq1_dot",
            [1, 0, -1, 0.5, 0, 0.25, -0.5, 1],
            [1.4124999, 0.7527175, -0.4374999, 2.3541665],
        ),
        (
            "tiny_rq6_cosine",
            [1, 0, -1, 0.5, 0, 0.25, -0.5, 1],
            [2.4824157, 2.3401527, 1.7925385, 2.0706468],
        ),
    ],
)
def test_rq_estimates_outside_blocks_of_32_rows_are_unrounded(
    tables: Path, name: str, query: list[float], expected: list[float]
) -> None:
    """Those of the last rows of a partition, which fill no block of 32."""
    table = Searched(tables / "14.0.2" / f"{name}.lance")
    ids, near = table.search(np.array(query, np.float32), 36, 1)
    by_row = dict(zip(ids, near, strict=True))
    rows = sorted(by_row)[32:]
    np.testing.assert_allclose([by_row[row] for row in rows], expected, rtol=1e-5)


def test_hnsw_of_0_15_is_walked(tables: Path) -> None:
    """Its distances were whole numbers then, and so of two rows at nearly one distance the order may differ."""
    path = tables / "0.15.0" / "ivf_hnsw_sq_l2.lance"
    table = Searched(path)
    (index,) = table.segments
    assert index.kind == "IVF_HNSW_SQ"
    known = json.loads(Path(str(path).replace(".lance", ".answers.json")).read_text())
    compared = 0
    for search in known["by_writer"]["searches"]:
        params = search["params"]
        if "nprobes" not in params or "refine_factor" in params:
            continue
        ids, _ = table.search(search["q"], params["k"], params["nprobes"], params.get("ef"))
        assert set(ids) == set(search["ids"])
        compared += 1
    assert compared == 4


def test_vector_queries_in_a_batch_equal_single_queries(tables: Path) -> None:
    kinds: Counter[str] = Counter()
    queries = np.random.default_rng(5).normal(size=(7, 8)).astype(np.float32)
    for path in names(tables, "14.0.2"):
        if path.name.startswith(("tiny", "u8")):
            continue
        table = Searched(path)
        for segment, together in zip(
            table.segments, table.found(queries, 9, Probes(1, 2)), strict=True
        ):
            assert (np.diff(together.queries) >= 0).all()
            for number, query in enumerate(queries):
                (alone,) = [
                    found
                    for each, found in zip(
                        table.segments, table.found(query[None], 9, Probes(1, 2)), strict=True
                    )
                    if each is segment
                ]
                mine = together.queries == number
                assert together.rows[mine].tolist() == alone.rows.tolist()
                assert together.distances[mine].tolist() == alone.distances.tolist()
            kinds[segment.kind] += 1
    assert set(kinds) == {
        *("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ"),
        *("IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"),
    }


def test_untrained_or_newer_vector_index_is_refused(tables: Path) -> None:
    with pytest.raises(NotFoundError):
        Searched(tables / "14.0.2" / "untrained_ivf_pq.lance")
    with pytest.raises(UnsupportedError, match=r"2\.3"):
        Searched(tables / "14.0.2" / "ivf_pq_data_2_3.lance")
