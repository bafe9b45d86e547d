"""PyTorch datasets of Lance tables: `LanceBatches` (iterable) and `LanceRows` (by row number).

`LanceBatches` yields the batches of `pennon.training` as tensors: shuffled, divided over ranks and workers, resumable
with any number of either.  It needs ``pip install "pennon[torch]"``.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401 - to say what is missing
except ModuleNotFoundError as error:
    message = 'pennon.torch needs PyTorch: pip install "pennon[torch]"'
    raise ModuleNotFoundError(message, name="torch") from error

from pennon.torch.batches import LanceBatches as LanceBatches
from pennon.torch.rows import LanceRows as LanceRows
from pennon.torch.rows import TakenRows as TakenRows
from pennon.torch.rows import collate as collate
from pennon.torch.tensors import to_tensors as to_tensors

__all__ = ["LanceBatches", "LanceRows", "TakenRows", "collate", "to_tensors"]
