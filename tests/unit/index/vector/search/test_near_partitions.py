"""The partitions nearest to queries: cut centroids say the same as all of them, as they are."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pennon.index.vector.metric import L2
from pennon.index.vector.search.ivf import IvfIndex


@pytest.mark.parametrize("spoiled", [0, 30, 395])
def test_near_partitions_with_uint8_bounds_equal_full_distances(spoiled: int) -> None:
    rng = np.random.default_rng(spoiled)
    centroids = rng.normal(size=(400, 32)).astype(np.float32)
    centroids[rng.permutation(400)[:spoiled]] = np.nan
    quantizer, reader = SimpleNamespace(kind="FLAT"), SimpleNamespace(has_graphs=False)
    index = IvfIndex(L2, centroids, cast("Any", quantizer), cast("Any", reader))
    queries = rng.normal(size=(50, 32)).astype(np.float32)
    far = ((queries[:, None] - centroids).astype(np.float64) ** 2).sum(axis=2)
    wanted = np.nan_to_num(far, nan=np.inf).argsort(axis=1, kind="stable")[:, :9]
    for _ in range(3):  # they are cut at the second time, if not before
        assert index.near_partitions(queries, 9).tolist() == wanted.tolist()
        assert index.near_partitions(queries[:1], 9).tolist() == wanted[:1].tolist()
