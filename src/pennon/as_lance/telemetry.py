"""Names of ``lance.lance`` for the numbers of a process, which `pennon.otel` gives to OpenTelemetry."""

from __future__ import annotations

from dataclasses import dataclass

from pennon.core.telemetry import CATALOG, TELEMETRY, Point, Recorder

__all__ = [
    "MetricDescription",
    "MetricPoint",
    "lance_metrics_catalog",
    "register_lance_metrics_recorder",
    "snapshot_lance_metrics",
]


@dataclass(frozen=True)
class MetricDescription:
    """A metric there is: ``kind`` is counter, gauge or histogram."""

    name: str
    kind: str
    unit: str | None
    description: str


@dataclass(frozen=True)
class MetricPoint:
    """A number as it is now: ``value``, or of a histogram ``buckets`` (bound, observations up to it), ``count`` and ``sum``."""

    name: str
    attributes: dict[str, str]
    value: float | None
    buckets: list[tuple[str, int]] | None
    count: int | None
    sum: float | None


def register_lance_metrics_recorder() -> bool:
    """Keep numbers from now on; return True."""
    if TELEMETRY.recorder is None:
        TELEMETRY.recorder = Recorder()
    return True


def lance_metrics_catalog() -> list[MetricDescription]:
    """Return all metrics there are."""
    return [
        MetricDescription(each.name, each.kind, each.unit or None, each.description)
        for each in CATALOG
    ]


def snapshot_lance_metrics() -> list[MetricPoint]:
    """Return all numbers as they are now; none if none are kept."""
    recorder = TELEMETRY.recorder
    return [] if recorder is None else [_point(each) for each in recorder.points()]


def _point(point: Point) -> MetricPoint:
    name, found = point.metric.name, point.histogram
    if found is None:
        return MetricPoint(name, point.attributes, point.value, None, None, None)
    buckets = found.cumulative()
    return MetricPoint(name, point.attributes, None, buckets, buckets[-1][1], found.total)
