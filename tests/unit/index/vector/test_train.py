"""Training on a sample: how large it is, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest

from pennon.index.vector.settings import VectorSettings
from pennon.index.vector.train import SAMPLE_BYTES, sample_rows, train


@pytest.mark.parametrize("floats", [8, 128, 1536, 1 << 14])
def test_a_sample_has_a_bound(floats: int) -> None:
    settings = VectorSettings("IVF_PQ", num_partitions=4096, sub_vectors=8)
    rows = sample_rows(settings, 10**9, floats, has_centroids=False, has_codebook=False)
    assert rows == min(4096 * 256, max(SAMPLE_BYTES // (4 * floats), 4096))


@pytest.mark.parametrize(
    ("kind", "sub_vectors", "of"), [("IVF_PQ", 4, 30 + 4), ("IVF_FLAT", 0, 30)]
)
def test_rounds_are_told_up_to_the_end(kind: str, sub_vectors: int, of: int) -> None:
    sample = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    settings = VectorSettings(kind, num_partitions=3, sub_vectors=sub_vectors, max_iters=30)
    told: list[tuple[int, int]] = []
    model = train(settings, sample, 600, told=lambda *each: told.append(each))
    assert told == sorted(told)
    assert (told[0], told[-1], {each for _, each in told}) == ((1, of), (of, of), {of})
    quiet = train(settings, sample, 600)
    assert np.array_equal(model.centroids, quiet.centroids)
