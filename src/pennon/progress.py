"""Progress of long work: callbacks of writes and index builds with the names of ``lance.progress``, and of all else.

>>> import pennon, pyarrow as pa
>>> ds = pennon.write_dataset(pa.table({"n": [1, 2]}), "memory://progress/t.lance", max_rows_per_file=1)
>>> with pennon.progress.report_to(print):
...     _ = ds.optimize.compact_files()
compacting 1 1
"""

from __future__ import annotations

from pennon.dataset.progress import (
    FileSystemFragmentWriteProgress,
    FragmentWriteProgress,
    IndexProgress,
    NoopFragmentWriteProgress,
)
from pennon.ops.bars import reporting as report_to
from pennon.ops.progress_bars import RichProgress, TqdmProgress

__all__ = [
    "FileSystemFragmentWriteProgress",
    "FragmentWriteProgress",
    "IndexProgress",
    "NoopFragmentWriteProgress",
    "RichProgress",
    "TqdmProgress",
    "report_to",
]
