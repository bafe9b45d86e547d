"""OpenTelemetry for Pennon: the numbers of stores, commits, scans, tasks and streams, and spans; the extra ``otel``.

Nothing is kept before `instrument` is called, and ``import pennon`` imports nothing of OpenTelemetry;
``import pennon.otel`` raises ModuleNotFoundError without the package ``opentelemetry-api``.
The metrics of stores have Lance's names (``lance_object_store_requests_total`` …), as in ``lance.otel``.

In Spark's workers, the environment variable ``PENNON_OTEL_SETUP=module:function`` names a function of yours that
configures OpenTelemetry and calls `instrument`; it is called once in each worker, before its first task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from pennon.core.extras import not_installed
from pennon.core.telemetry import CATALOG, TELEMETRY, Metric, Point, Recorder

try:
    from opentelemetry import metrics, trace
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
    from opentelemetry.trace import TracerProvider
except ModuleNotFoundError:
    raise not_installed("opentelemetry", "pennon.otel") from None

__all__ = ["instrument", "instrument_lance_metrics", "uninstrument"]

_NAME: Final = "pennon"
_OBSERVED: Final[WeakSet[MeterProvider]] = WeakSet()
"""The providers that have instruments: OpenTelemetry would count a second one of the same name twice."""


def instrument(
    meter_provider: MeterProvider | None = None,
    tracer_provider: TracerProvider | None = None,
    *,
    spans: bool = True,
) -> bool:
    """Keep numbers and spans from now on, and give them to OpenTelemetry; return True.

    ``meter_provider``, ``tracer_provider``: those of the process by default, which the program configures.
    ``spans``: also make spans of scans (``pennon.scan``), commits (``pennon.commit``) and Spark's tasks
    (``pennon.task``, with the ids of stage, partition and attempt).  A second call adds nothing twice.

    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> import pennon.otel
    >>> reader = InMemoryMetricReader()
    >>> pennon.otel.instrument(MeterProvider([reader]), spans=False)
    True
    >>> _ = pennon.write_dataset(pa.table({"id": [1]}), uri)
    >>> metrics = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    >>> "pennon_commits_total" in {metric.name for metric in metrics}
    True
    >>> pennon.otel.uninstrument()
    """
    provider = meter_provider or metrics.get_meter_provider()
    if TELEMETRY.recorder is None:
        TELEMETRY.recorder = Recorder()
    if provider not in _OBSERVED:
        _OBSERVED.add(provider)
        meter = provider.get_meter(_NAME)
        for metric in CATALOG:
            _observe(meter, metric)
    if spans:
        TELEMETRY.in_span = partial(
            trace.use_span, record_exception=False, set_status_on_exception=False
        )
        TELEMETRY.tracer = (tracer_provider or trace.get_tracer_provider()).get_tracer(_NAME)
    return True


def instrument_lance_metrics(meter_provider: MeterProvider | None = None) -> bool:
    """Keep numbers from now on, without spans; the name of ``lance.otel``.

    >>> import pennon.otel
    >>> pennon.otel.instrument_lance_metrics()
    True
    >>> pennon.otel.uninstrument()
    """
    return instrument(meter_provider, spans=False)


def uninstrument() -> None:
    """Keep nothing any more; what was kept is forgotten.

    >>> import pennon.otel
    >>> pennon.otel.uninstrument()
    """
    TELEMETRY.recorder = None
    TELEMETRY.tracer = None


def _observe(meter: Meter, metric: Metric) -> None:
    """Make the instruments of a metric.

    A histogram has no instrument that is asked for its numbers, so it is three counters, as Prometheus has them: of the
    observations up to each bound (``le``), of all, and their sum.
    """
    name, text = metric.name, metric.description
    if metric.kind == "counter":
        meter.create_observable_counter(name, [_asked(metric, _value)], metric.unit, text)
    elif metric.kind == "gauge":
        meter.create_observable_gauge(name, [_asked(metric, _value)], metric.unit, text)
    else:
        buckets = f"{text} (observations up to each bound)"
        meter.create_observable_counter(f"{name}_bucket", [_asked(metric, _buckets)], "", buckets)
        number = f"{text} (number)"
        meter.create_observable_counter(f"{name}_count", [_asked(metric, _number)], "", number)
        total = f"{text} (sum)"
        meter.create_observable_counter(f"{name}_sum", [_asked(metric, _sum)], metric.unit, total)


def _asked(
    metric: Metric, numbers: Callable[[Point], list[tuple[float, dict[str, str]]]]
) -> Callable[[CallbackOptions], list[Observation]]:
    """Return what OpenTelemetry calls for the numbers of a metric."""

    def observe(_: Any) -> list[Observation]:
        recorder = TELEMETRY.recorder
        points = [] if recorder is None else recorder.points()
        mine = (point for point in points if point.metric is metric)
        return [Observation(value, names) for point in mine for value, names in numbers(point)]

    return observe


def _value(point: Point) -> list[tuple[float, dict[str, str]]]:
    return [(point.value or 0, point.attributes)]


def _buckets(point: Point) -> list[tuple[float, dict[str, str]]]:
    found = [] if point.histogram is None else point.histogram.cumulative()
    return [(count, {**point.attributes, "le": bound}) for bound, count in found]


def _number(point: Point) -> list[tuple[float, dict[str, str]]]:
    return [(0 if point.histogram is None else sum(point.histogram.buckets), point.attributes)]


def _sum(point: Point) -> list[tuple[float, dict[str, str]]]:
    return [(0 if point.histogram is None else point.histogram.total, point.attributes)]
