"""Names of ``lance.torch.dist``: the place of this process among those of a training."""

from __future__ import annotations

from pennon.as_lance.dependencies import torch


def get_dist_world_size() -> int:
    """Return the number of processes in ``torch.distributed``; 1 without it."""
    distributed = torch.distributed
    return int(distributed.get_world_size()) if _is_initialized() else 1


def get_dist_rank() -> int:
    """Return the number of this process in ``torch.distributed``; 0 without it."""
    distributed = torch.distributed
    return int(distributed.get_rank()) if _is_initialized() else 0


def get_mp_world_size() -> int:
    """Return the number of workers of the DataLoader that this process works for; 1 in no worker."""
    info = torch.utils.data.get_worker_info()
    return 1 if info is None else int(info.num_workers)


def get_mp_rank() -> int:
    """Return the number of this worker of a DataLoader; 0 in no worker."""
    info = torch.utils.data.get_worker_info()
    return 0 if info is None else int(info.id)


def get_global_world_size() -> int:
    """Return the number of workers of all processes."""
    return get_dist_world_size() * get_mp_world_size()


def get_global_rank() -> int:
    """Return the number of this worker among those of all processes."""
    return get_dist_rank() * get_mp_world_size() + get_mp_rank()


def _is_initialized() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())
