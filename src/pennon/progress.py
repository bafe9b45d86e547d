"""Being told how a write, or the making of an index, goes on, with the names of ``lance.progress``."""

from __future__ import annotations

from pennon.dataset.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    IndexProgress,
    NoopFragmentWriteProgress,
)

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "IndexProgress",
    "NoopFragmentWriteProgress",
]
