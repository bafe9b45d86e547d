"""The most memory that this process held, as Linux accounts for it.

`resource.getrusage` will not do: its peak is inherited from the process that started this one.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa


def start_peak() -> int:
    """Forget the peak of this process's memory, and return what it holds now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """Return the most memory that this process held since `start_peak` or its own start."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in one)
    return int(line.split()[1]) * 1024


def held_bytes() -> int:
    """Return how many bytes of Arrow's pools are in use: those of streams, and all others."""
    usual, streams = pa.default_memory_pool(), pa.jemalloc_memory_pool()
    if usual.backend_name == streams.backend_name:
        return usual.bytes_allocated()
    return usual.bytes_allocated() + streams.bytes_allocated()
