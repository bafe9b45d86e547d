"""The cost model of a store: the price of a request against the bytes of a hole.

    kind            first byte after    gap        at once
    object store    some 30 ms          64 KiB     64
    S3 Express      some 5 ms           16 KiB     64
    web server      anything            256 KiB    8

A connection delivers some 50 bytes per microsecond, so a hole of 64 KiB costs about a millisecond,
and a request that 63 others run beside about half of one.  Object stores bill by the request, which
tips the scale.  A web server is one machine, and drops clients who open connections by the dozen.

Local files and memory have no limits: reading them is no request at all.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import KIB, MIB
from pennon.io.paths import Location

THREADS_VARIABLE: Final = "LANCE_IO_THREADS"


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The limits of reads from a store: sizes of requests, holes, and concurrency.

    ``gap_bytes``: holes up to this size are read rather than skipped.  ``request_bytes``: no
    request asks for more.  ``concurrency``: how many requests, and pieces of a scan, run at once.
    """

    gap_bytes: int = 64 * KIB
    request_bytes: int = 8 * MIB
    concurrency: int = 64


OBJECT_STORE: Final = FetchLimits()
EXPRESS: Final = FetchLimits(gap_bytes=16 * KIB)
WEB_SERVER: Final = FetchLimits(gap_bytes=256 * KIB, concurrency=8)


def is_express(location: Location) -> bool:
    """Tell whether this is a directory bucket of S3 Express, which its name says."""
    return location.scheme.startswith("s3") and location.authority.endswith("--x-s3")


def limits_of(location: Location) -> FetchLimits:
    """Return the limits of the store at a location.

    The environment variable that pylance takes for it, ``LANCE_IO_THREADS``, says how many requests
    run at once; what is no number above zero is passed over.
    """
    if location.scheme.startswith("http"):
        limits = WEB_SERVER
    else:
        limits = EXPRESS if is_express(location) else OBJECT_STORE
    asked = os.environ.get(THREADS_VARIABLE, "")
    if asked.isdecimal() and int(asked):
        return replace(limits, concurrency=int(asked))
    return limits
