"""Telling a callback what a scan read (``scan_stats_callback``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from pennon.scan.filter_unit import FilteredScan
from pennon.scan.metrics import Meter, ScanStatistics

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Told:
    """Tells the callback, if there is one, when the scan is complete; its errors are logged."""

    meter: Meter | None
    report: Callable[[ScanStatistics], object] | None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None or self.report is None or self.meter is None:
            return
        try:
            self.report(ScanStatistics.of(self.meter))
        except Exception:  # noqa: BLE001 - whatever the callback raises
            _LOG.exception("scan_stats_callback failed")

    def after(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches, and tell behind the last one."""
        with self:
            yield from batches


_NOBODY: Final = Told(None, None)


def metered(
    query: FilteredScan, report: Callable[[ScanStatistics], object] | None
) -> tuple[FilteredScan, Told]:
    """Return the query, metered if there is a callback, and what tells it."""
    if report is None:
        return query, _NOBODY
    meter = Meter(query.scan.snapshot.store.limits)
    snapshot = query.scan.snapshot.metered(meter)
    return replace(query, scan=replace(query.scan, snapshot=snapshot), tested=snapshot), Told(
        meter, report
    )
