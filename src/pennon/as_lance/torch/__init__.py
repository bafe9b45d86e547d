"""Names of ``lance.torch``: PyTorch datasets as pylance has them.

`pennon.torch` has datasets whose order is random as a whole, and that resume at any place.
"""

from __future__ import annotations

from typing import Any

from pennon.as_lance.dependencies import torch


def preferred_device(device: Any = None) -> Any:
    """Return a device of torch: the one that is named, else CUDA, else MPS, else the CPU."""
    if device is not None:
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    mps = torch.backends.mps
    return torch.device("mps" if mps.is_built() and mps.is_available() else "cpu")
