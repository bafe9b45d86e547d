"""Being told how a write goes on, with the names of ``lance.progress``."""

from __future__ import annotations

from pennon.dataset.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    NoopFragmentWriteProgress,
)

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "NoopFragmentWriteProgress",
]
