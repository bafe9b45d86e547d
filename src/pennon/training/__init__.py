"""Reading a table in a shuffled order, for training: `batches`, `Batches`, `Order`.

The order is a *pure function* of the table's version, the filter, the seed, the epoch and the position.
So each process computes its own rows, the state is a handful of numbers, and a run that was stopped goes on
with any number of processes.  `pennon.torch` makes tensors of the batches; JAX and numpy use them as they are.

>>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
>>> batches = pennon.training.batches(uri, batch_size=4, seed=7)
>>> [len(batch) for batch in batches]
[4, 4]
"""

from __future__ import annotations

from pennon.training.batch_iterator import BatchIterator as BatchIterator
from pennon.training.batches import Batches as Batches
from pennon.training.mixture import Mixture as Mixture
from pennon.training.order import Order as Order
from pennon.training.share import Share as Share

batches = Batches
"""The class, where a program reads better with a function: ``for batch in pennon.training.batches(uri): ...``."""

__all__ = ["BatchIterator", "Batches", "Mixture", "Order", "Share", "batches"]
