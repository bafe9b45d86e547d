"""Training on a sample: its size, and progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from pennon.index.vector.build.train import (
    CENTROIDS,
    CODEBOOK,
    SAMPLE_BYTES,
    Done,
    sample_rows,
    train,
)
from pennon.index.vector.settings import VectorSettings


@pytest.mark.parametrize("floats", [8, 128, 1536, 1 << 14])
def test_a_sample_has_a_bound(floats: int) -> None:
    settings = VectorSettings("IVF_PQ", num_partitions=4096, sub_vectors=8)
    rows = sample_rows(settings, 10**9, floats, has_centroids=False, has_codebook=False)
    assert rows == min(4096 * 256, max(SAMPLE_BYTES // (4 * floats), 4096))


@pytest.mark.parametrize(("kind", "sub_vectors"), [("IVF_PQ", 4), ("IVF_FLAT", 0)])
def test_training_reports_rounds_by_stage(kind: str, sub_vectors: int) -> None:
    sample = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    settings = VectorSettings(kind, num_partitions=3, sub_vectors=sub_vectors, max_iters=30)
    told: list[tuple[str, int]] = []
    units: Counter[str] = Counter()

    @contextmanager
    def stage(name: str, total: int, _unit: str) -> Iterator[Done]:
        yield partial(units.update, [name])
        told.append((name, total))

    model = train(settings, sample, 600, stage=stage)
    assert told == [(CENTROIDS, 30), (CODEBOOK, 4)][: 2 if sub_vectors else 1]
    assert 1 <= units[CENTROIDS] <= 30
    assert units[CODEBOOK] == sub_vectors
    quiet = train(settings, sample, 600)
    assert np.array_equal(model.centroids, quiet.centroids)
