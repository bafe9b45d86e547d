"""Training an index of vectors on a sample of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from pennon.core.thread_pools import map_all
from pennon.core.units import MIB
from pennon.index.vector.coders import coded_part
from pennon.index.vector.kmeans import BLOCK_ROWS, CREW, Trained, k_means
from pennon.index.vector.model import Model
from pennon.index.vector.rows import Floats, Matrix, as_floats, of_bits
from pennon.index.vector.settings import VectorSettings

Told: TypeAlias = Callable[[int, int], object]
"""Is told how many rounds are done, of how many at most; from several threads, one at a time."""

SAMPLE_BYTES: Final = 1024 * MIB
"""As many numbers of 4 bytes are trained on at most, whatever the sample rate."""
_LEAST_ROWS: Final = 1 << 12
_NUMBER_BYTES: Final = 4


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
    told: Told | None = None,
) -> Model:
    """Train an index of a table of so many rows; ``sample`` are vectors as `usable` gives them."""
    loss = None
    has_words = settings.quantizer == "PQ" and codebook is None
    rounds = settings.max_iters if centroids is None else 0
    steps = _Steps(told, rounds + (settings.sub_vectors if has_words else 0))
    if centroids is None:
        centroids, loss = _trained_centroids(settings, sample, rows, steps)
    steps.reach(rounds)
    model = Model(settings, centroids, codebook, loss=loss)
    if has_words:
        return _with(model, codebook=_trained_codebook(model, sample, steps))
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


class _Steps:
    """How far a training is: rounds of its centroids, then the parts of its codebook."""

    def __init__(self, told: Told | None, steps: int) -> None:
        self._told, self._steps, self._done = told, steps, 0
        self._lock = threading.Lock()

    def add(self) -> None:
        """Say that one more is done."""
        with self._lock:
            self._tell(self._done + 1)

    def reach(self, done: int) -> None:
        """Say that so many are done."""
        with self._lock:
            self._tell(done)

    def _tell(self, done: int) -> None:
        self._done = done
        if self._told is not None:
            self._told(done, self._steps)


def _trained_centroids(
    settings: VectorSettings, sample: Matrix, rows: int, steps: _Steps
) -> tuple[Matrix, float]:
    count = min(settings.partitions(rows), len(sample))
    chosen = _at_most(sample, count * settings.sample_rate, settings.seed)
    trained = k_means(
        as_floats(chosen),
        count,
        seed=settings.seed,
        max_iters=settings.max_iters,
        metric=settings.metric,
        after_round=steps.add,
    )
    if sample.dtype == np.uint8:
        return of_bits(trained.centroids), trained.loss
    return trained.centroids.astype(sample.dtype), trained.loss


def _trained_codebook(model: Model, sample: Matrix, steps: _Steps) -> Matrix:
    settings = model.settings
    chosen = _at_most(sample, settings.words * settings.sample_rate, settings.seed + 1)
    near = model.assigner()
    starts = range(0, len(chosen), BLOCK_ROWS)

    def left(start: int) -> Floats:
        block = chosen[start : start + BLOCK_ROWS]
        found, _ = near.nearest(block)
        part: Floats = coded_part(model, block, found.ravel()).astype(np.float32)
        return part

    rest = np.concatenate(map_all(left, starts, CREW))
    width = model.dim // settings.sub_vectors

    def one(part: int) -> Trained:
        mine = np.ascontiguousarray(rest[:, part * width : (part + 1) * width])
        found = k_means(
            mine,
            settings.words,
            seed=settings.seed + part,
            max_iters=settings.max_iters,
            is_fine=True,
        )
        steps.add()
        return found

    trained = map_all(one, range(settings.sub_vectors), CREW)
    return np.stack([each.centroids for each in trained]).astype(sample.dtype)


def _at_most(sample: Matrix, rows: int, seed: int) -> Matrix:
    """Return so many vectors of a sample, at random."""
    if len(sample) <= rows:
        return sample
    chosen = np.random.default_rng(seed).choice(len(sample), rows, replace=False)
    return sample[np.sort(chosen)]
