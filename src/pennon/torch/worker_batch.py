"""Batches on their way from a worker of a DataLoader to the process that trains, in memory that both map.

torch sends each tensor in memory of its own, which the kernel clears and maps anew, and texts and images through a pipe.
Here a batch is copied once, into a part of memory that its worker keeps and fills again when no tensor of it is left.
The memory has no name and is not of ``/dev/shm``: nothing remains of it when all processes are killed.
"""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self, TypeAlias

import numpy as np
import torch
from torch.utils.data import get_worker_info

from pennon.core.units import KIB
from pennon.errors import UnsupportedError

Buffer: TypeAlias = bytes | bytearray | memoryview
_LEAST_BYTES: Final = 32 * KIB
"""Smaller batches go through the pipe."""
_LEAST_BUFFER: Final = 4 * KIB
"""Smaller tensors and values are part of the pickle."""
_MOST_SLOTS: Final = 8
"""A worker has no more; a batch that finds none goes as torch sends it."""
_ALIGNMENT: Final = 64
_FREE, _FULL, _ABANDONED = 0, 1, 2
"""The states of a slot, in its first byte.

A worker never fills an abandoned slot again: the training process forked another one, which may read its tensors.
"""


class WorkerBatch(dict[Any, Any]):
    """A batch in a worker of a DataLoader; a dict that reaches the other process as a plain one."""

    def __copy__(self) -> Self:
        """Return a copy that also travels in mapped memory; torch's ``default_convert`` makes one."""
        return type(self)(self)

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[Any, Any]]]:
        """Return what any pickle but that for another process holds."""
        return dict, (dict(self),)


def in_worker(made: Any) -> Any:
    """Return a batch as one that travels in mapped memory, if this is a worker of a DataLoader."""
    is_sent = type(made) is dict and get_worker_info() is not None and _can_share()
    return WorkerBatch(made) if is_sent else made


@cache
def _can_share() -> bool:
    """Return whether another process of this user can open the files of this one in ``/proc``."""
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        return False
    try:
        return Path("/proc/self/fd").stat().st_uid == os.geteuid()
    except OSError:
        return False


# --- in the worker ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Memory for one batch at a time, which this process keeps."""

    descriptor: int
    memory: mmap.mmap

    @classmethod
    def of(cls, size: int) -> Self:
        """Make a slot; raises OSError if there is no memory or no descriptor."""
        descriptor = os.memfd_create("pennon-batch", os.MFD_CLOEXEC)  # type: ignore[attr-defined, unused-ignore]
        try:
            os.ftruncate(descriptor, size)
            return cls(descriptor, mmap.mmap(descriptor, size))
        except (OSError, ValueError):
            os.close(descriptor)
            raise

    @property
    def state(self) -> int:
        """Return whether the slot is free, full or abandoned."""
        return self.memory[0]

    def close(self) -> None:
        """Let go of the memory; it remains where another process has mapped it."""
        self.memory.close()
        os.close(self.descriptor)


_SLOTS: Final[list[_Slot]] = []
_LOCK: Final = Lock()


def _free_slot(size: int) -> _Slot | None:
    """Return a slot of at least ``size`` bytes, which is full from now on; None if all are."""
    with _LOCK:
        for slot in [each for each in _SLOTS if each.state == _ABANDONED]:
            _drop(slot)
        free = [each for each in _SLOTS if each.state == _FREE]
        found = next((each for each in free if len(each.memory) >= size), None)
        if found is None:
            if len(_SLOTS) == _MOST_SLOTS and not free:
                return None
            if free:
                _drop(free[0])  # too small
            try:
                found = _Slot.of(size + size // 4)
            except (OSError, ValueError):
                return None
            _SLOTS.append(found)
        found.memory[0] = _FULL
        return found


def _drop(slot: _Slot) -> None:
    _SLOTS.remove(slot)
    slot.close()


def _forget_slots() -> None:
    """Close the slots of the process that this one was forked from."""
    while _SLOTS:
        _SLOTS.pop().close()


class _NotPlainError(Exception):
    """A value of a batch is one that torch has to send itself."""


class _BatchPickler(ForkingPickler):
    """Pickles a batch whose tensors are beside it.

    A batch with a value that only torch can send goes to torch whole: torch moves the memory of a tensor that it sends, and
    other tensors of this batch may be views of that memory.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how a tensor travels; raises _NotPlainError for one that is not in this process's memory alone."""
        if isinstance(value, (torch.UntypedStorage, torch.TypedStorage)):
            raise _NotPlainError
        if not isinstance(value, torch.Tensor):
            return NotImplemented
        is_plain = (
            type(value) is torch.Tensor
            and value.device.type == "cpu"
            and value.layout is torch.strided
            and not (value.requires_grad or value.is_quantized or value.is_shared())
        )
        if not is_plain:
            raise _NotPlainError
        flat = value.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        return _tensor, (pickle.PickleBuffer(flat.numpy()), value.dtype, tuple(value.shape))


@dataclass(frozen=True, slots=True)
class _LargeValues:
    """A list of ``bytes``, which travel beside the pickle."""

    values: Sequence[bytes | None]

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _list_of_bytes, (
            [None if each is None else pickle.PickleBuffer(each) for each in self.values],
        )


def _with_large_values(value: Any) -> Any:
    """Return a batch, or a part of it, in which lists of large ``bytes`` are marked."""
    if type(value) in (dict, WorkerBatch):
        return {key: _with_large_values(each) for key, each in value.items()}
    if type(value) is not list or not value:
        return value
    if not all(each is None or type(each) is bytes for each in value):
        return value
    size = sum(len(each) for each in value if each is not None)
    return _LargeValues(value) if size >= _LEAST_BUFFER * len(value) else value


def _pickled(batch: dict[Any, Any]) -> list[memoryview]:
    """Return the pickle of a batch, and what is beside it."""
    file, beside = BytesIO(), list[memoryview]()

    def is_inside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _LEAST_BUFFER:
            return True
        beside.append(raw)
        return False

    _BatchPickler(file, 5, True, is_inside).dump(_with_large_values(batch))  # noqa: FBT003 - positions of Pickler
    return [file.getbuffer(), *beside]


def _reduce(batch: WorkerBatch) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return how a batch goes to another process."""
    plain = batch.__reduce__()
    if get_worker_info() is None:
        return plain
    try:
        parts = _pickled(batch)
    except _NotPlainError:
        return plain
    ends, size = [], _ALIGNMENT
    for part in parts:
        ends.append((size, size + part.nbytes))
        size = -(-(size + part.nbytes) // _ALIGNMENT) * _ALIGNMENT
    if size < _LEAST_BYTES:
        return plain
    slot = _free_slot(size)
    if slot is None:
        return plain
    into = np.frombuffer(slot.memory, np.uint8)
    for part, (start, end) in zip(parts, ends, strict=True):
        into[start:end] = np.frombuffer(part, np.uint8)
    del into  # a slot that is exported cannot be closed
    inode = os.fstat(slot.descriptor).st_ino
    return _received, (os.getpid(), slot.descriptor, inode, size, tuple(ends))


# --- in the process that trains -------------------------------------------------------------------------


_RECEIVED: Final[dict[int, mmap.mmap]] = {}
"""The memory of batches that may have a live tensor, by its `id`."""


def _received(
    process: int, descriptor: int, inode: int, size: int, ends: Sequence[tuple[int, int]]
) -> Mapping[Any, Any]:
    """Return a batch that lies in the memory of a worker; the memory is free when no tensor of it is left."""
    try:
        own = os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        message = (
            f"a batch of the DataLoader's worker {process} cannot be read: {error}. If the worker runs, this system does not "
            "let a process open the memory of its workers: give the DataLoader collate_fn=dict"
        )
        raise UnsupportedError(message) from error
    try:
        if os.fstat(own).st_ino != inode:
            message = f"the DataLoader's worker {process} ended before its batch was read"
            raise UnsupportedError(message)
        memory = mmap.mmap(own, size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)  # type: ignore[attr-defined, unused-ignore]
    finally:
        os.close(own)
    whole = np.frombuffer(memory, np.uint8)
    _RECEIVED[id(memory)] = memory
    weakref.finalize(whole, _release, id(memory)).atexit = False
    parts = [whole[start:end].data for start, end in ends]
    return pickle.loads(parts[0], buffers=parts[1:])  # noqa: S301 - of our own worker


def _release(key: int) -> None:
    """Let the worker fill the memory of a batch again."""
    memory = _RECEIVED.pop(key)
    if memory[0] == _FULL:
        memory[0] = _FREE


def _abandon_received() -> None:
    """Mark the slots of all batches as abandoned: the process that is forked now shares their tensors."""
    for memory in list(_RECEIVED.values()):
        memory[0] = _ABANDONED


def _tensor(data: Buffer, kind: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
    if not len(data):
        return torch.empty(tuple(shape), dtype=kind)
    return torch.frombuffer(data, dtype=kind).reshape(tuple(shape))


def _list_of_bytes(values: Sequence[Buffer | None]) -> list[bytes | None]:
    return [None if each is None else bytes(each) for each in values]


ForkingPickler.register(WorkerBatch, _reduce)
if hasattr(os, "register_at_fork"):  # not on Windows, where no process is forked
    os.register_at_fork(before=_abandon_received, after_in_child=_forget_slots)
