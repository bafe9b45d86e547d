"""Vectors of real texts: the service descriptions of botocore, weighted words reduced to a few dimensions."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import numpy as np

from tests.interop.vector_tables import Matrix, VectorTable

ROWS = 18_000
QUERIES = 200
DIM = 64
_TEXTS = 20_000
"""So many are read, for some are of the same words: they would be as near as each other."""
_WORDS = 2000
_SPARE = 32
_COMMON = 0.2
_TAG = re.compile(r"<[^>]*>")
_WORD = re.compile(r"[a-z]{3,}")
_SHORTEST = 60


@cache
def text_table() -> VectorTable:
    """Return the vectors of texts, and of other texts as queries; the same ones each time."""
    weighted = _weighted([_WORD.findall(text) for text in _texts(_TEXTS)])
    distinct = list({row.tobytes(): place for place, row in enumerate(weighted)}.values())
    vectors = _reduced(weighted[distinct])
    order = np.random.default_rng(18).permutation(len(vectors))[: QUERIES + ROWS]
    assert len(order) == QUERIES + ROWS, f"{len(distinct)} texts of different words"
    return VectorTable(vectors[order[QUERIES:]], vectors[order[:QUERIES]])


def _texts(count: int) -> Iterator[str]:
    """Yield so many different descriptions, in the order of the services' names."""
    seen: set[str] = set()
    for path in sorted((Path(botocore.__file__).parent / "data").glob("*/*/service-2.json.gz")):
        for found in _descriptions(json.loads(gzip.decompress(path.read_bytes()))):
            text = _TAG.sub(" ", found).lower()
            if len(text) >= _SHORTEST and text not in seen:
                seen.add(text)
                yield text
                if len(seen) == count:
                    return
    message = f"botocore {botocore.__version__} has {len(seen)} descriptions"
    raise AssertionError(message)


def _descriptions(said: dict[str, Any]) -> Iterator[str]:
    for group in ("operations", "shapes"):
        for each in said.get(group, {}).values():
            for part in (each, *each.get("members", {}).values()):
                if isinstance(part, dict) and isinstance(part.get("documentation"), str):
                    yield part["documentation"]


def _weighted(texts: list[list[str]]) -> Matrix:
    """Return how much each text is of each of some words: tf-idf."""
    counts = Counter(word for text in texts for word in set(text))
    most = _COMMON * len(texts)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    known = [word for word, count in ranked if count <= most][:_WORDS]
    places = {word: place for place, word in enumerate(known)}
    found = np.zeros((len(texts), len(known)), np.float32)
    for row, text in enumerate(texts):
        for word, count in Counter(text).items():
            if word in places:
                found[row, places[word]] = 1 + np.log(count)
    return found * np.log(len(texts) / np.array([counts[word] for word in known], np.float32))


def _reduced(matrix: Matrix) -> Matrix:
    """Return the rows of a matrix in a few dimensions: a truncated SVD of it, by random projection."""
    rng = np.random.default_rng(64)
    basis = rng.normal(size=(matrix.shape[1], DIM + _SPARE)).astype(np.float32)
    for _ in range(2):
        rows = np.linalg.qr(matrix @ basis)[0]
        basis = np.linalg.qr(matrix.T @ rows)[0]
    rows = np.linalg.qr(matrix @ basis)[0]
    left, sizes, _ = np.linalg.svd(rows.T @ matrix, full_matrices=False)
    found: Matrix = ((rows @ left[:, :DIM]) * sizes[:DIM]).astype(np.float32)
    return found / np.float32(np.sqrt(np.square(found).sum(1).mean()))
