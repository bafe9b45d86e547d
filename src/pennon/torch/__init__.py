"""Lance tables for PyTorch: shuffled, resumable batches of tensors (`LanceBatches`), and rows by number (`LanceRows`).

The order of `LanceBatches` is a pure function of the table's version, the filter, the seed, the epoch and the
position: see `pennon.training`.  Needs the package torch: ``pip install 'pennon[torch]'``.
"""

from __future__ import annotations

from pennon.core.extras import not_installed

try:
    import torch as _torch  # noqa: F401 - asked for here, so that the message says what to install
except ModuleNotFoundError as _error:
    if _error.name != "torch":
        raise
    raise not_installed("torch", "pennon.torch") from None

from pennon.torch.lance_batches import LanceBatches as LanceBatches
from pennon.torch.lance_rows import LanceRows as LanceRows
from pennon.torch.lance_rows import RowList as RowList
from pennon.torch.lance_rows import collate as collate
from pennon.torch.tensors import to_tensors as to_tensors

__all__ = ["LanceBatches", "LanceRows", "RowList", "collate", "to_tensors"]
