"""FAISS beside both: ``search_faiss.py faiss`` runs in an interpreter of its own (`peers.py`), which has NumPy and FAISS.

Its indices are in memory, and of the same parameters: as many partitions, sub-vectors, links.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import faiss
import numpy as np
from tasks import Side, Task, Works, answer_tasks, random_places

LINKS, BREADTH = 20, 150
"""Of a graph as pylance makes it: links of a node, and how many nodes are looked at for them."""


class FaissSide(Side):
    """Indices of vectors, the last one made."""

    def __init__(self) -> None:
        self.vectors: Any = None
        self.index: Any = None
        self.exact: Any = None

    def prepare_write(self, task: Task) -> Works:
        """Take the vectors."""
        self.vectors = np.load(task["vectors"])
        self.exact = faiss.IndexFlatL2(self.vectors.shape[1])
        self.exact.add(self.vectors)
        return [lambda: len(self.vectors)]

    def prepare_index(self, task: Task) -> Works:
        """Make an index."""

        def work() -> int:
            self.index = None
            index = empty_index(task["kind"], self.vectors.shape[1], task["options"])
            index.train(self.vectors)
            index.add(self.vectors)
            self.index = index
            return 0

        return [work]

    def prepare_near(self, task: Task) -> Works:
        """Search the rows near queries."""
        how = task["how"]
        index, k = self.exact if how.get("use_index") is False else self.index, how["k"]
        options: dict[str, Any] = {}
        if "ef" in how:
            options["params"] = faiss.SearchParametersHNSW(efSearch=how["ef"])
        elif "nprobes" in how:
            options["params"] = faiss.SearchParametersIVF(nprobe=how["nprobes"])
        if "refine_factor" in how:
            factor = how["refine_factor"]
            index = faiss.IndexRefineFlat(index, faiss.swig_ptr(self.vectors))
            below = options["params"]
            params = faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=below)
            options["params"] = params
        queries = np.load(task["queries"])

        def near(some: Any) -> Any:
            return index.search(some, k, **options)[1]

        if task.get("answers"):
            return [lambda: near(queries).tolist()]
        places = random_places(len(queries), task)
        asked = [queries if task["count"] > 1 else queries[at : at + 1] for at in places]
        return [partial(_done, near, some) for some in asked]


def _done(near: Any, some: Any) -> None:
    near(some)


def empty_index(kind: str, dim: int, options: dict[str, Any]) -> Any:
    """Return an index that has no vectors."""
    if kind == "IVF_HNSW_FLAT":
        index = faiss.IndexHNSWFlat(dim, LINKS)
    elif kind == "IVF_HNSW_SQ":
        index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, LINKS)
    else:
        partitions = options["num_partitions"]
        coarse = faiss.IndexFlatL2(dim)
        if kind == "IVF_PQ":
            parts = options["num_sub_vectors"]
            index = faiss.IndexIVFPQ(coarse, dim, partitions, parts, 8)
        elif kind == "IVF_SQ":
            steps = faiss.ScalarQuantizer.QT_8bit
            index = faiss.IndexIVFScalarQuantizer(coarse, dim, partitions, steps)
        else:
            index = faiss.IndexIVFFlat(coarse, dim, partitions)
        index.own_fields = True
        coarse.this.disown()
        return index
    index.hnsw.efConstruction = BREADTH
    return index


if __name__ == "__main__":
    answer_tasks(FaissSide())
