"""Indices of random programs: their kinds, and questions about what they cover, each with its answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tests.property.programs.filters import COMPARE, Tree, holds
from tests.property.programs.kinds import KINDS, LABELS, TOKENS, Kind
from tests.property.programs.model import Index, State

Question = tuple[tuple[Any, ...], Any]
"""A question, as `steps.ask` takes it, and its answer."""

ORDERED = ("int32", "int64", "uint8", "float64", "string", "large_string", "date", "timestamp")
LISTS = ("labels", "list")
SCALAR: dict[str, tuple[str, ...]] = {
    "BTREE": (*ORDERED, "bool", "phrase"),
    "BITMAP": (*ORDERED, "bool"),
    "ZONEMAP": ORDERED,
    "BLOOMFILTER": ("int32", "int64", "uint8", "float64", "string", "large_string"),
    "LABEL_LIST": LISTS,
    "NGRAM": ("string", "phrase"),
    "INVERTED": ("phrase",),
}
"""Kinds of columns that an index of a kind takes."""
IVF = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ")
GRAPHS = ("IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
VECTORS: dict[str, tuple[str, ...]] = {
    "IVF_FLAT": ("embedding", "bits"),
    **dict.fromkeys((*IVF[1:], *GRAPHS), ("embedding",)),
}
COLUMN_KINDS = (*ORDERED, "bool", *LISTS, "phrase", "embedding", "bits")
FEWEST_VECTORS = 20
"""Code words of 4 bits are trained on 16 vectors or more."""
_ALL_PROBES = 64


def kinds_for(column: str) -> list[str]:
    """Return the kinds of indices that a column of a kind may have."""
    return [name for name, takes in {**SCALAR, **VECTORS}.items() if column in takes]


def one_of_a_column(kind: str) -> bool:
    """Return whether a search would not say which of two such indices of one column it asks."""
    return kind == "INVERTED" or kind in VECTORS


def random_parameters(rng: Random, kind: str, column: str) -> dict[str, Any]:
    """Return parameters of an index that is made; tables are small, and so are its parts."""
    if kind in VECTORS:
        metrics = ("hamming",) if column == "bits" else ("l2", "l2", "cosine", "dot")
        found: dict[str, Any] = {
            "metric": rng.choice(metrics),
            "num_partitions": rng.choice([1, 1, 2, 3]),
        }
        if kind.endswith("PQ"):
            found |= {"num_sub_vectors": rng.choice([2, 4]), "num_bits": 4}
        if kind.endswith("RQ"):
            found |= {"num_bits": 1}
        return found
    small = rng.random() < 0.5
    match kind:
        case "BTREE" if small:
            return {"zone_size": rng.choice([7, 20])}
        case "ZONEMAP" if small:
            return {"rows_per_zone": rng.choice([5, 16])}
        case "BLOOMFILTER" if small:
            return {"number_of_items": rng.choice([5, 16])}
        case "INVERTED":
            plain = dict.fromkeys(("stem", "remove_stop_words", "ascii_folding"), False)
            return {**plain, "with_position": rng.random() < 0.6}
    return {}


# --- filters --------------------------------------------------------------------------------------


def random_leaf(rng: Random, state: State, name: str) -> Tree:
    """Return a condition on a column, mostly about values that rows have."""
    column = state.column(name)
    kind = KINDS[column.kind]
    present = [row.get(column.number) for row in state.rows.values()]
    present = [value for value in present if value is not None]
    if kind.sql is None and column.kind not in LISTS:
        return (rng.choice(["null", "not null"]), name)
    if rng.random() < 0.1:
        return (rng.choice(["null", "not null"]), name)
    values = [_value(rng, kind, present) for _ in range(3)]
    if column.kind in LISTS:
        return _leaf_of_list(rng, name, column.kind, values)
    if column.kind == "bool":
        return ("compare", name, rng.choice(["=", "!="]), "bool", values[0])
    if kind.type == KINDS["string"].type and rng.random() < 0.6:
        return _leaf_of_text(rng, name, column.kind, values[0])
    choice = rng.random()
    if choice < 0.25:
        return ("in", name, column.kind, tuple(values))
    if choice < 0.5:
        return ("between", name, column.kind, min(values[:2]), max(values[:2]))
    return ("compare", name, rng.choice(list(COMPARE)), column.kind, values[0])


def _value(rng: Random, kind: Kind, present: Sequence[Any]) -> Any:
    return rng.choice(present) if present and rng.random() < 0.8 else kind.make(rng, "2.0")


def _leaf_of_list(rng: Random, name: str, kind: str, values: Sequence[Any]) -> Tree:
    items = [item for value in values for item in value if item is not None]
    items += [rng.choice(LABELS) if kind == "labels" else rng.randint(-50, 50)]
    word = rng.choice(["has", "has any", "has all"])
    if word == "has":
        return (word, name, kind, rng.choice(items))
    return (word, name, kind, tuple(rng.sample(items, min(len(items), rng.randint(1, 2)))))


def _leaf_of_text(rng: Random, name: str, kind: str, text: str) -> Tree:
    start = rng.randrange(max(len(text) - 3, 1))
    part = text[start : start + rng.choice([1, 3, 3, 4, 6])] or "a"
    if rng.random() < 0.5:
        return ("starts", name, kind, text[: rng.choice([1, 2, 4])])
    return ("contains", name, kind, part)


def random_tree(rng: Random, state: State, names: Sequence[str]) -> Tree:
    """Return a condition on some columns."""
    one = random_leaf(rng, state, rng.choice(names))
    choice = rng.random()
    if choice < 0.5:
        return one
    if choice < 0.65:
        return ("not", one)
    return (rng.choice(["and", "or"]), one, random_leaf(rng, state, rng.choice(names)))


# --- questions ------------------------------------------------------------------------------------


def random_questions(rng: Random, state: State) -> list[Question]:
    """Return questions about each index, and about several columns at once."""
    names = [column.name for column in state.columns]
    rows = [state.named(row) for row in state.rows.values()]
    by_number = {column.number: column for column in state.columns}
    questions: list[Question] = []
    for index in state.indices:
        name = by_number[index.column].name
        if index.kind in VECTORS:
            if sum(other.column == index.column for other in state.indices) > 1:
                continue  # of two that were made at once any may be asked
            questions.append(_nearest(rng, state, rows, index, name))
        elif index.kind == "INVERTED":
            questions.append(_text(rng, state, rows, index, name))
        else:
            questions.append(_filtered(random_leaf(rng, state, name), rows))
            questions.append(_counted(random_leaf(rng, state, name), rows))
    indexed = [by_number[index.column].name for index in state.indices]
    mixed = ([*indexed, rng.choice(names)], names)
    return questions + [_filtered(random_tree(rng, state, chosen), rows) for chosen in mixed]


def _filtered(tree: Tree, rows: Sequence[Mapping[str, Any]]) -> Question:
    return ("keys", tree), sorted(row["k"] for row in rows if holds(tree, row))


def _counted(tree: Tree, rows: Sequence[Mapping[str, Any]]) -> Question:
    return ("count", tree), sum(1 for row in rows if holds(tree, row))


def _condition(rng: Random, state: State) -> tuple[Tree | None, bool]:
    """Return what else a search asks for, and whether that is looked at before it."""
    names = [column.name for column in state.columns]
    tree = random_tree(rng, state, names) if rng.random() < 0.4 else None
    return tree, rng.random() < 0.7


def _passing(tree: Tree | None, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if tree is None or holds(tree, row)]


def _nearest(
    rng: Random, state: State, rows: Sequence[dict[str, Any]], index: Index, name: str
) -> Question:
    """Return a search for all rows, or for the nearest few where the index is exact."""
    kind = state.column(name).kind
    query = KINDS[kind].make(rng, "2.0")
    tree, prefilter = _condition(rng, state)
    k = len(rows) + 300  # more than rows that are gone, which pylance counts (F-537)
    if index.kind == "IVF_FLAT" and rng.random() < 0.4:
        k, prefilter = rng.randint(1, 5), True
    metric = dict(index.parameters)["metric"]
    search = {
        "column": name,
        "q": query,
        "k": k,
        "nprobes": _ALL_PROBES,
        "ef": 2 * (len(rows) + 300),
        "refine_factor": 1,
        "metric": metric,
        "use_index": rng.random() < 0.85,
    }
    wanted = [
        (row["k"], distance(metric, query, row[name]))
        for row in _passing(tree, rows)
        if row[name] is not None
    ]
    return ("nearest", tuple(search.items()), tree, prefilter), sorted(wanted)


def distance(metric: str, one: Sequence[Any], other: Sequence[Any]) -> float:
    """Return the distance of two vectors, as searches show it."""
    if metric == "hamming":
        return float(sum((a ^ b).bit_count() for a, b in zip(one, other, strict=True)))
    product = sum(a * b for a, b in zip(one, other, strict=True))
    if metric == "l2":
        return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))
    if metric == "dot":
        return float(1 - product)
    return float(1 - product / (math.hypot(*one) * math.hypot(*other)))


def _text(
    rng: Random, state: State, rows: Sequence[dict[str, Any]], index: Index, name: str
) -> Question:
    """Return a full-text search that finds whatever matches."""
    tree, prefilter = _condition(rng, state)
    positions = dict(index.parameters)["with_position"]
    one = _text_leaf(rng, name, positions=positions)
    if rng.random() < 0.25:
        occurs = rng.choice(["MUST", "SHOULD", "MUST_NOT"])
        one = ("boolean", ("MUST", one), (occurs, _text_leaf(rng, name, positions=positions)))
    wanted = [row["k"] for row in _passing(tree, rows) if text_matches(one, row)]
    return ("text", one, tree, prefilter), sorted(wanted)


def _text_leaf(rng: Random, name: str, *, positions: bool) -> tuple[Any, ...]:
    tokens = tuple(rng.choices([*TOKENS, "nobody"], k=rng.choice([1, 1, 2, 3])))
    if positions and rng.random() < 0.4:
        return ("phrase", name, tokens[:2])
    return ("match", name, rng.choice(["OR", "AND"]), tokens)


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a text, as the tokenizer ``simple`` finds them without stems."""
    return re.findall(r"[a-z0-9]+", text.lower())


def text_matches(question: tuple[Any, ...], row: Mapping[str, Any]) -> bool:
    """Return whether a full-text query finds a row."""
    match question:
        case ("boolean", *parts):
            found = [(occur, text_matches(inner, row)) for occur, inner in parts]
            musts = all(hit for occur, hit in found if occur == "MUST")
            return musts and not any(hit for occur, hit in found if occur == "MUST_NOT")
        case ("match", name, operator, asked):
            held = set(tokens_of(row[name] or ""))
            wanted = [token.lower() in held for token in asked]
            return all(wanted) if operator == "AND" else any(wanted)
        case ("phrase", name, asked):
            held_in_order = tokens_of(row[name] or "")
            phrase = [token.lower() for token in asked]
            size = len(phrase)
            return any(held_in_order[at : at + size] == phrase for at in range(len(held_in_order)))
    raise ValueError(question)


def is_right(question: tuple[Any, ...], answer: Any, wanted: Any) -> bool:
    """Return whether an answer is right: of distances those that are near enough."""
    if question[0] != "nearest" or not isinstance(answer, list):
        return bool(answer == wanted)
    k = dict(question[1])["k"]
    if len(answer) != min(k, len(wanted)):
        return False
    if len(answer) == len(wanted):
        return all(_alike(one, other) for one, other in zip(answer, wanted, strict=True))
    right = dict(wanted)
    least = sorted(right.values())[: len(answer)]
    own = sorted(distance for _, distance in answer)
    return all(_near(right.get(key, math.inf), far) for key, far in answer) and all(
        map(_near, own, least)
    )


def _alike(one: tuple[int, float], other: tuple[int, float]) -> bool:
    return one[0] == other[0] and _near(one[1], other[1])


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
