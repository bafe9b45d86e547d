"""Numbers and spans for monitoring: `pennon.otel` turns them on, and until then nothing is kept.

Each place that measures asks `TELEMETRY` first, so one look at a variable is all that it costs while it is off.
The metrics of stores have the names of Lance's, so that dashboards show Pennon as well.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from itertools import accumulate
from types import TracebackType
from typing import Any, Concatenate, Final, Literal, ParamSpec, Self, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Attributes: TypeAlias = tuple[tuple[str, str], ...]

SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    *(10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 150.0, 180.0, 240.0, 300.0),
)
"""Upper bounds of the buckets of a histogram of seconds: those of Lance."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A name under which numbers are kept, by their attributes."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    description: str
    unit: str = ""


REQUESTS: Final = Metric(
    "lance_object_store_requests_total", "counter", "Requests to stores, by operation and scheme."
)
REQUEST_BYTES: Final = Metric(
    "lance_object_store_request_bytes_total",
    "counter",
    "Bytes that requests to stores carried, by operation and scheme.",
    "B",
)
REQUEST_SECONDS: Final = Metric(
    "lance_object_store_request_duration_seconds",
    "histogram",
    "Seconds that requests to stores took, by operation and scheme.",
    "s",
)
REQUEST_ERRORS: Final = Metric(
    "lance_object_store_errors_total",
    "counter",
    "Requests to stores that failed, by operation and scheme.",
)
REQUESTS_NOW: Final = Metric(
    "lance_object_store_in_flight_requests",
    "gauge",
    "Requests to stores without an answer yet, by operation and scheme.",
)
THROTTLES: Final = Metric(
    "lance_object_store_throttle_total",
    "counter",
    "Requests that a store refused for load (429, 503) until their retries were used up, by status.",
)
RETRYABLE: Final = Metric(
    "lance_object_store_retryable_responses_total",
    "counter",
    "Requests that failed with a status that is retried (5xx, 429, 408) until their retries were used up, by status.",
)
READ_RETRIES: Final = Metric(
    "pennon_read_retries_total", "counter", "Reads sent again because the answer broke off."
)
COMMITS: Final = Metric("pennon_commits_total", "counter", "Versions committed, by operation.")
COMMIT_SECONDS: Final = Metric(
    "pennon_commit_duration_seconds", "histogram", "Seconds of commits, by operation.", "s"
)
CONFLICTS: Final = Metric(
    "pennon_commit_conflicts_total",
    "counter",
    "Meetings with other writers, by outcome: settled, lost_race (tried again), refused.",
)
OPERATION_RETRIES: Final = Metric(
    "pennon_operation_retries_total", "counter", "Operations done again after a conflict."
)
SCANS: Final = Metric("pennon_scans_total", "counter", "Scans and searches that ended.")
SCAN_ROWS: Final = Metric("pennon_scan_rows_total", "counter", "Rows that scans returned.")
SCAN_SECONDS: Final = Metric(
    "pennon_scan_duration_seconds", "histogram", "Seconds from begin to end of scans.", "s"
)
TASKS: Final = Metric("pennon_tasks_total", "counter", "Tasks of Spark that ended, by kind.")
TASK_SECONDS: Final = Metric(
    "pennon_task_duration_seconds", "histogram", "Seconds of Spark's tasks, by kind.", "s"
)
STREAM_LAG: Final = Metric(
    "pennon_stream_lag_versions",
    "gauge",
    "Versions of a table that a reading stream has not reached, by table.",
)
PROGRESS_DONE: Final = Metric(
    "pennon_progress_done", "gauge", "Parts of the running operation that are done, by operation."
)
PROGRESS_ALL: Final = Metric(
    "pennon_progress_total", "gauge", "Parts of the running operation, by operation."
)
CATALOG: Final = (
    *(REQUESTS, REQUEST_BYTES, REQUEST_SECONDS, REQUEST_ERRORS, REQUESTS_NOW, THROTTLES, RETRYABLE),
    *(READ_RETRIES, COMMITS, COMMIT_SECONDS, CONFLICTS, OPERATION_RETRIES),
    *(SCANS, SCAN_ROWS, SCAN_SECONDS, TASKS, TASK_SECONDS),
    *(STREAM_LAG, PROGRESS_DONE, PROGRESS_ALL),
)
"""All metrics there are."""


@dataclass(slots=True)
class Histogram:
    """Observations, counted for each bucket of `SECONDS` and above them, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.buckets[bisect_left(SECONDS, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, int]]:
        """Return each bound and the observations up to it; the last, ``+Inf``, counts all."""
        bounds = [*map(str, SECONDS), "+Inf"]
        return list(zip(bounds, accumulate(self.buckets), strict=True))


@dataclass(frozen=True, slots=True)
class Point:
    """The number of one metric for one set of attributes: a value, or a histogram."""

    metric: Metric
    attributes: dict[str, str]
    value: float | None = None
    histogram: Histogram | None = None


Series: TypeAlias = tuple[Metric, Attributes]
"""A metric and the attributes of one of its numbers."""


def series(metric: Metric, **attributes: str) -> Series:
    """Return the key of one number of a metric; made once where it is added to often."""
    return metric, tuple(sorted(attributes.items()))


class Recorder:
    """The numbers of all metrics of this process; threads may record at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[Series, float] = {}
        self._histograms: dict[Series, Histogram] = {}

    def add(self, metric: Metric, amount: float = 1, **attributes: str) -> None:
        """Add to a counter, or to a gauge."""
        self.add_to(series(metric, **attributes), amount)

    def add_to(self, key: Series, amount: float) -> None:
        """Add to one number."""
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def set(self, metric: Metric, value: float, **attributes: str) -> None:
        """Set a gauge."""
        with self._lock:
            self._values[series(metric, **attributes)] = value

    def observe(self, metric: Metric, value: float, **attributes: str) -> None:
        """Add an observation to a histogram."""
        key = series(metric, **attributes)
        with self._lock:
            self._histograms.setdefault(key, Histogram()).observe(value)

    def points(self) -> list[Point]:
        """Return all numbers as they are now."""
        with self._lock:
            values = [
                Point(metric, dict(attributes), value)
                for (metric, attributes), value in self._values.items()
            ]
            return values + [
                Point(metric, dict(attributes), None, Histogram([*found.buckets], found.total))
                for (metric, attributes), found in self._histograms.items()
            ]


class Telemetry:
    """The recorder of this process, and the tracer of its spans; both are None while telemetry is off."""

    __slots__ = ("in_span", "recorder", "tracer")

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.tracer: Any = None
        """An `opentelemetry.trace.Tracer`."""
        self.in_span: Callable[[Any], AbstractContextManager[Any]] = nullcontext
        """Returns a block in which a span is the current one."""

    @property
    def is_on(self) -> bool:
        """Return whether anything is kept."""
        return self.recorder is not None or self.tracer is not None


TELEMETRY: Final = Telemetry()


def count(metric: Metric, amount: float = 1, **attributes: str) -> None:
    """Add to a counter, if telemetry is on."""
    recorder = TELEMETRY.recorder
    if recorder is not None:
        recorder.add(metric, amount, **attributes)


def gauge(metric: Metric, value: float, **attributes: str) -> None:
    """Set a gauge, if telemetry is on."""
    recorder = TELEMETRY.recorder
    if recorder is not None:
        recorder.set(metric, value, **attributes)


class Work:
    """A piece of work that is measured: it ends once, and may have failed."""

    def __init__(
        self,
        name: str,
        metrics: tuple[Metric, Metric],
        attributes: Mapping[str, str],
        described: Mapping[str, str | int],
    ) -> None:
        """Begin; ``metrics`` count and time it by ``attributes``, and its span has these and what ``described`` says."""
        self._metrics = metrics
        self._attributes = attributes
        self._began = time.perf_counter()
        tracer = TELEMETRY.tracer
        everything = {**attributes, **described}
        self.span = None if tracer is None else tracer.start_span(name, attributes=everything)

    def end(self, error: BaseException | None = None, **found: int) -> None:
        """End the work; ``found``: further attributes of its span."""
        recorder, (counted, timed) = TELEMETRY.recorder, self._metrics
        if recorder is not None:
            recorder.observe(timed, time.perf_counter() - self._began, **self._attributes)
            if error is None:
                recorder.add(counted, 1, **self._attributes)
        if self.span is not None:
            self.span.set_attributes(found)
            if error is not None:
                self.span.record_exception(error)
                self.span.set_attribute("error.type", type(error).__name__)
            self.span.end()


@contextmanager
def measured(
    name: str,
    metrics: tuple[Metric, Metric],
    attributes: Mapping[str, str],
    **described: str | int,
) -> Generator[None]:
    """Measure a block, if telemetry is on; spans that begin inside are its children."""
    if not TELEMETRY.is_on:
        yield
        return
    work = Work(name, metrics, attributes, described)
    try:
        with TELEMETRY.in_span(work.span) if work.span is not None else nullcontext():
            yield
    except BaseException as error:
        work.end(error)
        raise
    work.end()


def measured_rows(batches: Iterator[Any], work: Work) -> Iterator[Any]:
    """Yield the batches of a scan, and end its work after the last one, or where its reader stops."""
    rows = 0
    failure: BaseException | None = None
    try:
        for batch in batches:
            rows += batch.num_rows
            yield batch
    except GeneratorExit:
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        end_scan(work, rows, failure)


def begin_scan(uri: str) -> Work:
    """Begin to measure a scan of a table."""
    return Work("pennon.scan", (SCANS, SCAN_SECONDS), {}, {"pennon.table": uri})


def end_scan(work: Work, rows: int, error: BaseException | None = None) -> None:
    """End the work of a scan, which returned so many rows."""
    count(SCAN_ROWS, rows)
    work.end(error, **{"pennon.rows": rows})


class Request:
    """The measuring of one request to a store; a place without a recorder makes none."""

    __slots__ = ("_base", "_began", "_operation", "_recorder", "size_bytes")

    def __init__(self, recorder: Recorder, operation: str, base: str) -> None:
        """Measure a request: ``get``, ``put``, ``head``, ``list`` or ``delete``, and the scheme of its store."""
        self._recorder, self._operation, self._base = recorder, operation, base
        self.size_bytes = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._recorder.add(REQUESTS_NOW, 1, operation=self._operation, base=self._base)
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """End."""
        seconds = time.perf_counter() - self._began
        record, names = self._recorder, {"operation": self._operation, "base": self._base}
        record.add(REQUESTS_NOW, -1, **names)
        record.add(REQUESTS, 1, **names)
        record.observe(REQUEST_SECONDS, seconds, **names)
        if error is not None:
            record.add(REQUEST_ERRORS, 1, **names)
        elif self.size_bytes:
            record.add(REQUEST_BYTES, self.size_bytes, **names)


def requests_a(
    operation: str,
    base_of: Callable[[Any], str],
    size_of: Callable[[Any, Any, tuple[Any, ...]], int] | None = None,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator for methods of stores that are one request each.

    ``base_of``: from the store to its scheme.  ``size_of``: from the store, what is returned and the arguments
    to the bytes carried.
    """

    def decorate(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def request(self: S, /, *args: P.args, **options: P.kwargs) -> R:
            recorder = TELEMETRY.recorder
            if recorder is None:
                return method(self, *args, **options)
            with Request(recorder, operation, base_of(self)) as measure:
                found = method(self, *args, **options)
                if size_of is not None:
                    measure.size_bytes = size_of(self, found, args)
            return found

        return request

    return decorate
