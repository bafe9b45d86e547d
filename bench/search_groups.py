"""What is searched: tables of vectors, of numbers and texts, and of documents; their indices; what each is asked.

A group is a table of some size.  It has kinds: an index, and what is asked of a table that has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from groups import Random
from tasks import Task

DIM = 128
K = 10
QUERIES = 100
BATCHES = 5
"""So many batches are asked in a row, as single queries are."""
PARTITIONS_ASKED = 20
MERGED = 1000

BUILD = "build"


@dataclass(frozen=True, slots=True)
class Data:
    """A table, and arrays beside it: ``vectors`` and ``queries`` of a table of vectors."""

    table: pa.Table
    arrays: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Something that is asked, and what the ratio to pylance is to be."""

    what: str
    task: Task
    goal: float
    has_faiss: bool = False
    on_own: bool = False
    """Each side does it to a table of its own."""
    is_long: bool = False
    """It takes seconds, and is repeated as often as a build."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An index, None: there is none, and what is asked with it."""

    name: str
    index: Task | None
    plans: Sequence[Plan]
    build_goal: float = 1.0
    has_faiss: bool = False


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """How a table is made, and what is measured of it.  ``is_large``: only where it is named."""

    make: Callable[[int, Random], Data]
    rows: int
    kinds: Callable[[int], list[Kind]]
    is_large: bool = False


# --- vectors --------------------------------------------------------------------------------------


def vectors(rows: int, random: Random) -> Data:
    """Vectors around some means, as embeddings of things of some kinds are; queries are near to the same."""
    means = random.normal(size=(500, DIM))
    near = [
        (means[random.integers(0, len(means), count)] + random.normal(size=(count, DIM)) * 0.7)
        for count in (rows, QUERIES)
    ]
    items, queries = (np.ascontiguousarray(each, np.float32) for each in near)
    column = pa.FixedSizeListArray.from_arrays(pa.array(items.reshape(-1)), DIM)
    table = pa.table(
        {
            "id": np.arange(rows),
            "vector": column,
            "percent": random.integers(0, 100, rows, np.int32),
        }
    )
    return Data(table, {"vectors": items, "queries": queries})


def near(count: int, times: int, **how: Any) -> Task:
    """Return the task of a search for the nearest rows of ``count`` queries at once, ``times`` over."""
    return {"do": "near", "count": count, "times": times, "how": {"k": K, **how}}


def vector_kinds(rows: int) -> list[Kind]:
    """Return exact search, and all indices of vectors."""
    partitions = 1 << round(math.log2(math.sqrt(rows)))
    return [
        exact(),
        ivf("IVF_FLAT", partitions, build_goal=3),
        ivf("IVF_PQ", partitions, build_goal=3, num_sub_vectors=16),
        ivf("IVF_SQ", partitions, build_goal=1),
        ivf("IVF_RQ", partitions, build_goal=1),
        graph("IVF_HNSW_FLAT", build_goal=1),
        graph("IVF_HNSW_PQ", build_goal=1, num_sub_vectors=16),
        graph("IVF_HNSW_SQ", build_goal=1.2),
    ]


def exact() -> Kind:
    """Return searches that compare all rows."""
    return Kind(
        "exact",
        None,
        [
            Plan("single query", near(1, 5, use_index=False), 2, has_faiss=True),
            Plan(
                "batch of 100", near(QUERIES, 1, use_index=False), 2, has_faiss=True, is_long=True
            ),
            Plan("of 1 % of the rows", near(1, 5, use_index=False, below=1), 1.5),
            Plan("of 50 % of the rows", near(1, 5, use_index=False, below=50), 1.5),
        ],
        has_faiss=True,
    )


def ivf(kind: str, partitions: int, build_goal: float, **options: Any) -> Kind:
    """Return an index of partitions, with FAISS where it has the same."""
    how, has_faiss = {"nprobes": PARTITIONS_ASKED}, kind != "IVF_RQ"
    plans = searches(how, has_faiss=has_faiss)
    if kind == "IVF_PQ":
        refined = {**how, "refine_factor": 10}
        plans += [
            Plan("refined, single query", near(1, 20, **refined), 3, has_faiss=True),
            Plan("refined, batch of 100", near(QUERIES, BATCHES, **refined), 5, has_faiss=True),
            Plan("of 1 % of the rows", near(1, 20, **how, below=1), 1.5),
            Plan("of 50 % of the rows", near(1, 20, **how, below=50), 1.5),
        ]
    options = {"num_partitions": partitions, **options}
    return Kind(kind, vector_index(kind, options), plans, build_goal, has_faiss)


def graph(kind: str, build_goal: float, **options: Any) -> Kind:
    """Return an index whose one partition has a graph, as FAISS has it."""
    has_faiss = kind != "IVF_HNSW_PQ"
    plans = searches({"nprobes": 1, "ef": 64}, has_faiss=has_faiss)
    options = {"num_partitions": 1, **options}
    return Kind(kind, vector_index(kind, options), plans, build_goal, has_faiss)


def vector_index(kind: str, options: Mapping[str, Any]) -> Task:
    """Return the task of making an index of vectors."""
    return {"do": "index", "column": "vector", "kind": kind, "options": options}


def searches(how: Mapping[str, Any], *, has_faiss: bool) -> list[Plan]:
    """Return what is asked of each index of vectors."""
    return [
        Plan("first query after open", {**near(1, 1, **how), "is_cold": True}, 1.5),
        Plan("single query", near(1, 20, **how), 3, has_faiss=has_faiss),
        Plan("batch of 100", near(QUERIES, BATCHES, **how), 5, has_faiss=has_faiss),
    ]


# --- scalars --------------------------------------------------------------------------------------


def scalars(rows: int, random: Random) -> Data:
    """Keys as numbers and as texts, values of few kinds, labels, times that ascend, hashes and short texts."""
    keys = random.permutation(rows)
    labels = pa.array([f"label {at}" for at in range(200)])
    ends = np.concatenate([[0], np.cumsum(random.integers(0, 5, rows))]).astype(np.int32)
    words = pa.array(WORDS[:2000])
    some = [words.take(pa.array(random.integers(0, len(words), rows))) for _ in range(3)]
    return Data(
        pa.table(
            {
                "id": np.arange(rows),
                "key": keys,
                "name": pc.binary_join_element_wise("name", pa.array(keys).cast("string"), " "),
                "few": pa.array([f"kind {at}" for at in range(50)]).take(
                    pa.array(random.integers(0, 50, rows))
                ),
                "labels": pa.ListArray.from_arrays(
                    pa.array(ends), labels.take(pa.array(random.integers(0, 200, int(ends[-1]))))
                ),
                "time": np.arange(rows) * 10 + random.integers(0, 1000, rows),
                "hash": pa.array(random.permutation(rows)).cast("string"),
                "text": pc.binary_join_element_wise(*some, " "),
            }
        )
    )


def scalar_kinds(rows: int) -> list[Kind]:
    """Return an index of each kind; the conditions are the same for all sides."""
    random = np.random.default_rng(7)
    keys = random.integers(0, rows, 100).tolist()
    starts = random.integers(0, rows - rows // 1000, 20).tolist()
    lists = [", ".join(map(str, random.integers(0, rows, 100))) for _ in range(20)]
    names = [", ".join(f"'name {n}'" for n in random.integers(0, rows, 100)) for _ in range(20)]
    some = random.integers(0, 50, 20).tolist()
    merge = {"do": "merge", "column": "key", "count": MERGED, "rows": rows}
    return [
        scalar(
            "BTREE of int64",
            "key",
            Plan("point lookup", rows_where([f"key = {n}" for n in keys]), 1.5),
            Plan(
                "range of 0.1 %",
                rows_where([f"key >= {n} AND key < {n + rows // 1000}" for n in starts]),
                1.5,
            ),
            Plan("IN of 100", rows_where([f"key IN ({each})" for each in lists]), 1.5),
            Plan("merge_insert of 1,000", merge, 2, on_own=True, is_long=True),
        ),
        scalar(
            "BTREE of strings",
            "name",
            Plan("point lookup", rows_where([f"name = 'name {n}'" for n in keys]), 1.5),
            Plan("IN of 100", rows_where([f"name IN ({each})" for each in names]), 1.5),
        ),
        scalar(
            "BITMAP",
            "few",
            Plan("count of one value", count_where([f"few = 'kind {n}'" for n in some]), 1.5),
            Plan(
                "count of three values",
                count_where([f"few IN ('kind {n}', 'kind 3', 'kind 5')" for n in some]),
                1.5,
            ),
        ),
        scalar(
            "LABEL_LIST",
            "labels",
            Plan(
                "rows with a label",
                count_where([f"array_has(labels, 'label {n}')" for n in some]),
                1.5,
            ),
            Plan(
                "rows with two labels",
                count_where([f"array_has_all(labels, ['label {n}', 'label 7'])" for n in some]),
                1.5,
            ),
        ),
        scalar(
            "ZONEMAP",
            "time",
            Plan(
                "range of 0.1 %",
                rows_where([f"time >= {n * 10} AND time < {n * 10 + rows // 100}" for n in starts]),
                1.5,
            ),
        ),
        scalar(
            "BLOOMFILTER",
            "hash",
            Plan("point lookup", rows_where([f"hash = '{n}'" for n in keys[:20]]), 1.5),
        ),
        scalar(
            "NGRAM",
            "text",
            Plan("contains", count_where([f"contains(text, '{w} ')" for w in WORDS[:20]]), 1.5),
        ),
    ]


def scalar(name: str, column: str, *plans: Plan) -> Kind:
    """Return an index of a column; its kind is the first word of its name."""
    kind = name.partition(" ")[0]
    goal = 1.2 if kind in {"BTREE", "BITMAP"} else 1.0
    index = {"do": "scalar_index", "column": column, "kind": kind, "options": {}}
    return Kind(name, index, plans, goal)


def rows_where(conditions: Sequence[str]) -> Task:
    """Return the task of reading the ids of rows that meet conditions, one after the other."""
    return {"do": "rows", "conditions": list(conditions)}


def count_where(conditions: Sequence[str]) -> Task:
    """Return the task of counting rows that meet conditions, one after the other."""
    return {"do": "count", "conditions": list(conditions)}


# --- full text ------------------------------------------------------------------------------------


def make_words(count: int) -> list[str]:
    """Return words that sound like some language, all different."""
    random = np.random.default_rng(11)
    syllables = [first + last for first in "bdfgklmnprstvz" for last in "aeiou"]
    found: dict[str, None] = {}
    while len(found) < count:
        picked = random.integers(0, len(syllables), int(random.integers(2, 5))).tolist()
        found["".join(syllables[at] for at in picked)] = None
    return list(found)


WORDS = make_words(20_000)
"""The words of texts, the most frequent first."""


def documents(rows: int, random: Random) -> Data:
    """Short texts of words that are the rarer, the later they stand among all: the n-th as 1 / n."""
    lengths = random.integers(6, 24, rows)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    shares = 1 / (np.arange(len(WORDS)) + 8)
    picked = random.choice(len(WORDS), int(ends[-1]), p=shares / shares.sum())
    words = pa.ListArray.from_arrays(pa.array(ends), pa.array(WORDS).take(pa.array(picked)))
    return Data(pa.table({"id": np.arange(rows), "text": pc.binary_join(words, " ")}))


def text_kinds(_rows: int) -> list[Kind]:
    """Return the index of full text, with positions, and queries of each form."""
    random = np.random.default_rng(5)
    often = [WORDS[at] for at in random.integers(0, 100, 20)]
    seldom = [WORDS[at] for at in random.integers(5_000, 15_000, 20)]
    pairs = [f"{a} {b}" for a, b in zip(often, [WORDS[at + 40] for at in range(20)], strict=True)]
    plans = {
        "frequent word": text_search("Match", often),
        "frequent word, top 1,000": text_search("Match", often, limit=1000),
        "rare word": text_search("Match", seldom),
        "any of three words": text_search(
            "Match", [f"{pair} {word}" for pair, word in zip(pairs, seldom, strict=True)]
        ),
        "both of two words": text_search("Match", pairs, operator="AND"),
        "phrase": text_search("Phrase", pairs),
        "fuzzy word": text_search("Match", [word[:-1] + "x" for word in seldom], fuzziness=1),
    }
    options = {"with_position": True, "stem": False, "remove_stop_words": False}
    index = {"do": "scalar_index", "column": "text", "kind": "INVERTED", "options": options}
    return [Kind("INVERTED", index, [Plan(what, task, 1.5) for what, task in plans.items()], 1.2)]


def text_search(form: str, words: Sequence[str], limit: int = K, **options: Any) -> Task:
    """Return the task of searching texts, one after the other."""
    options = {"fuzziness": 0, **options} if form == "Match" else options
    return {"do": "text", "form": form, "words": list(words), "limit": limit, "options": options}


SEARCHED: Mapping[str, SearchGroup] = {
    "vectors-100k": SearchGroup(vectors, 100_000, vector_kinds),
    "scalars-1m": SearchGroup(scalars, 1_000_000, scalar_kinds),
    "text-1m": SearchGroup(documents, 1_000_000, text_kinds),
    "vectors-1m": SearchGroup(vectors, 1_000_000, vector_kinds, is_large=True),
    "scalars-10m": SearchGroup(scalars, 10_000_000, scalar_kinds, is_large=True),
    "text-10m": SearchGroup(documents, 10_000_000, text_kinds, is_large=True),
}
