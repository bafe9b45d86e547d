"""Training an index of vectors on a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypeAlias

import numpy as np

from pennon.core.thread_pools import map_all, map_in_order
from pennon.core.units import MIB
from pennon.index.vector.kmeans import BLOCK_ROWS, POOL, Trained, k_means
from pennon.index.vector.model import Model
from pennon.index.vector.quantizers.pq import coded_part
from pennon.index.vector.rows import Floats, Matrix, as_floats, of_bits
from pennon.index.vector.settings import VectorSettings

Done: TypeAlias = Callable[[], object]
"""Is called when one more unit of a stage is done."""
Stage: TypeAlias = Callable[[str, int, str], AbstractContextManager[Done]]
"""Is entered for what is trained: by its name, how many units it takes at most, and what these are."""

CENTROIDS: Final = "train_ivf"
CODEBOOK: Final = "train_quantizer"
"""The stages of a training, by the names that pylance has for them."""

SAMPLE_BYTES: Final = 1024 * MIB
"""As many numbers of 4 bytes are trained on at most, whatever the sample rate."""
_LEAST_ROWS: Final = 1 << 12
_NUMBER_BYTES: Final = 4


@contextmanager
def _untold(_name: str, _total: int, _unit: str) -> Iterator[Done]:
    """Report no stage."""
    yield bool


def sample_rows(
    settings: VectorSettings, rows: int, floats: int, *, has_centroids: bool, has_codebook: bool
) -> int:
    """Return how many vectors, of so many numbers each, of a table of so many rows an index is trained on."""
    wanted = 1
    if not has_centroids:
        wanted = settings.partitions(rows) * settings.sample_rate
    if settings.quantizer == "PQ" and not has_codebook:
        wanted = max(wanted, settings.words * settings.sample_rate)
    if settings.quantizer == "SQ":
        wanted = max(wanted, 256 * settings.sample_rate)
    return min(wanted, rows, max(SAMPLE_BYTES // (_NUMBER_BYTES * floats), _LEAST_ROWS))


def can_train(settings: VectorSettings, vectors: int, *, has_codebook: bool) -> bool:
    """Return whether so many vectors are enough."""
    if settings.quantizer == "PQ" and not has_codebook:
        return vectors >= settings.words
    return vectors > 0


def train(
    settings: VectorSettings,
    sample: Matrix,
    rows: int,
    *,
    centroids: Matrix | None = None,
    codebook: Matrix | None = None,
    stage: Stage = _untold,
) -> Model:
    """Train an index of a table of so many rows; ``sample`` are vectors as `usable` gives them.

    ``stage`` is entered for what is trained: with its name, how many units it takes at most, and what these are.
    """
    loss = None
    if centroids is None:
        with stage(CENTROIDS, settings.max_iters, "iterations") as done:
            centroids, loss = _trained_centroids(settings, sample, rows, done)
    model = Model(settings, centroids, codebook, loss=loss)
    if settings.quantizer == "PQ" and codebook is None:
        with stage(CODEBOOK, settings.sub_vectors, "sub-vectors") as done:
            return _with(model, codebook=_trained_codebook(model, sample, done))
    if settings.quantizer == "SQ":
        bounds = (float(sample.min()), float(sample.max())) if sample.size else (0.0, 0.0)
        return _with(model, bounds=bounds)
    if settings.quantizer == "RQ":
        size = 4 * -(-model.dim // 8)
        return _with(model, signs=np.random.default_rng(settings.seed).bytes(size))
    return model


def _with(model: Model, **changes: Any) -> Model:
    known = {
        "codebook": model.codebook,
        "bounds": model.bounds,
        "signs": model.signs,
        "loss": model.loss,
        **changes,
    }
    return Model(model.settings, model.centroids, **known)


def _trained_centroids(
    settings: VectorSettings, sample: Matrix, rows: int, done: Done
) -> tuple[Matrix, float]:
    count = min(settings.partitions(rows), len(sample))
    chosen = _at_most(sample, count * settings.sample_rate, settings.seed)
    trained = k_means(
        as_floats(chosen),
        count,
        seed=settings.seed,
        max_iters=settings.max_iters,
        metric=settings.metric,
        done=done,
    )
    if sample.dtype == np.uint8:
        return of_bits(trained.centroids), trained.loss
    return trained.centroids.astype(sample.dtype), trained.loss


def _trained_codebook(model: Model, sample: Matrix, done: Done) -> Matrix:
    settings = model.settings
    chosen = _at_most(sample, settings.words * settings.sample_rate, settings.seed + 1)
    near = model.assigner()
    starts = range(0, len(chosen), BLOCK_ROWS)

    def left(start: int) -> Floats:
        block = chosen[start : start + BLOCK_ROWS]
        found, _ = near.nearest(block)
        part: Floats = coded_part(model, block, found.ravel()).astype(np.float32)
        return part

    rest = np.concatenate(map_all(left, starts, POOL))
    width = model.dim // settings.sub_vectors

    def one(part: int) -> Trained:
        mine = np.ascontiguousarray(rest[:, part * width : (part + 1) * width])
        return k_means(
            mine,
            settings.words,
            seed=settings.seed + part,
            max_iters=settings.max_iters,
            is_fine=True,
        )

    parts = range(settings.sub_vectors)
    words = []
    for trained in map_in_order(one, parts, lambda _: 1, len(parts), POOL):
        words.append(trained.centroids)
        done()
    return np.stack(words).astype(sample.dtype)


def _at_most(sample: Matrix, rows: int, seed: int) -> Matrix:
    """Return so many vectors of a sample, at random."""
    if len(sample) <= rows:
        return sample
    chosen = np.random.default_rng(seed).choice(len(sample), rows, replace=False)
    return sample[np.sort(chosen)]
