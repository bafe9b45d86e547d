"""Progress callbacks of writes and index builds, with the names of ``lance.progress``."""

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
