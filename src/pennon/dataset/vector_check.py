"""Whether an index of vectors finds what it holds (pylance's ``lance.util``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pennon.errors import ArgumentError
from pennon.index.vector.metric import L2
from pennon.index.vector.rows import usable

if TYPE_CHECKING:
    from pennon.dataset.lance_dataset import LanceDataset

_SAME = 1e-6
_AT_ONCE = 1024


def validate_vector_index(
    dataset: LanceDataset,
    column: str,
    refine_factor: int = 5,
    sample_size: int | None = None,
    pass_threshold: float = 1.0,
) -> None:
    """Search an index for vectors of its table, each of which is to be found at distance 0.

    ``sample_size``: so many random rows, by default all.  NULLs, and vectors with a NaN, are passed over.
    Raises ArgumentError where a share below ``pass_threshold`` is found.

    >>> import numpy as np, pennon, tempfile
    >>> from pennon.util import validate_vector_index
    >>> from pennon.vector import vec_to_table
    >>> vectors = np.random.default_rng(1).normal(size=(100, 8))
    >>> table = pennon.write_dataset(vec_to_table(vectors), tempfile.mkdtemp() + "/t.lance")
    >>> validate_vector_index(table.create_index("vector", "IVF_FLAT", num_partitions=2), "vector")
    """
    rows = (
        dataset.to_table(columns=[column])
        if sample_size is None
        else dataset.sample(sample_size, columns=[column])
    )
    found = total = 0
    for chunk in rows.column(0).chunks:
        vectors, _ = usable(chunk, np.arange(len(chunk), dtype=np.uint64), L2)
        total += len(vectors)
        for start in range(0, len(vectors), _AT_ONCE):
            asked = {
                "column": column,
                "q": vectors[start : start + _AT_ONCE],
                "k": 1,
                "nprobes": 1,
                "refine_factor": refine_factor,
            }
            near = dataset.to_table(columns=["_distance"], nearest=asked).column("_distance")
            found += int((np.abs(near.to_numpy()) < _SAME).sum())
    if found < pass_threshold * total:
        message = f"Vector index failed sanity check, only {found}/{total} passed"
        raise ArgumentError(message)
