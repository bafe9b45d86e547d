"""`pennon.otel`: what OpenTelemetry is told of stores, commits, scans and tasks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import pennon
import pennon.otel
from pennon.as_lance import native


class Observed:
    """The numbers and spans of a test."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.spans = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.meters = MeterProvider([self.reader])

    def instrument(self) -> None:
        pennon.otel.instrument(self.meters, self.tracers)

    def numbers(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Return the numbers of a metric by their attributes."""
        data = self.reader.get_metrics_data()
        return {
            tuple(sorted(dict[str, Any](point.attributes or {}).items())): point.value
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        }

    def span(self, name: str) -> Any:
        """Return the last span of a name."""
        return [each for each in self.spans.get_finished_spans() if each.name == name][-1]


@pytest.fixture
def observed() -> Iterator[Observed]:
    """Telemetry that is on for one test."""
    found = Observed()
    found.instrument()
    yield found
    pennon.otel.uninstrument()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Where a test's table goes."""
    return str(tmp_path / "table.lance")


ROWS = pa.table({"id": range(10)})


def test_commits_are_counted_and_timed_by_operation(observed: Observed, uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    pennon.write_dataset(ROWS, uri, mode="append")
    pennon.dataset(uri).delete("id = 3")
    assert observed.numbers("pennon_commits_total") == {
        (("operation", "Overwrite"),): 1,
        (("operation", "Append"),): 1,
        (("operation", "Delete"),): 1,
    }
    assert observed.numbers("pennon_commit_duration_seconds_count")[("operation", "Append"),] == 1


def test_span_of_a_commit_names_table_operation_and_version(observed: Observed, uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    pennon.write_dataset(ROWS, uri, mode="append")
    attributes = dict(observed.span("pennon.commit").attributes)
    assert attributes == {
        "operation": "Append",
        "pennon.table": uri,
        "pennon.read_version": 1,
    }


def test_scans_count_rows_and_end_where_their_reader_stops(observed: Observed, uri: str) -> None:
    table = pennon.write_dataset(ROWS, uri)
    table.to_table(filter="id < 4")
    batches: Any = table.to_batches(batch_size=2)
    next(batches)
    batches.close()
    assert observed.numbers("pennon_scan_rows_total") == {(): 6}
    assert observed.numbers("pennon_scans_total") == {(): 2}
    assert observed.span("pennon.scan").attributes["pennon.rows"] == 2


def test_scan_that_fails_ends_its_span_with_the_error(observed: Observed, uri: str) -> None:
    table = pennon.write_dataset(ROWS, uri)
    for file in (Path(uri) / "data").iterdir():
        file.unlink()
    with pytest.raises(pennon.errors.NotFoundError):
        pennon.dataset(uri).to_table()
    assert observed.span("pennon.scan").attributes["error.type"] == "NotFoundError"
    assert observed.numbers("pennon_scans_total") == {}
    assert table.version == 1


def test_conflicts_that_are_settled_and_refused_are_counted(observed: Observed, uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    old = pennon.dataset(uri)
    pennon.dataset(uri).delete("id = 3")
    pennon.write_dataset(ROWS, pennon.dataset(uri, version=1), mode="append")
    with pytest.raises(pennon.errors.RetryableConflict):
        old.delete("id = 3", conflict_retries=0)
    assert observed.numbers("pennon_commit_conflicts_total") == {
        (("outcome", "settled"),): 1,
        (("outcome", "refused"),): 1,
    }


def test_operations_that_are_done_again_are_counted(observed: Observed, uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    old = pennon.dataset(uri)
    pennon.dataset(uri).delete("id = 3")
    old.delete("id < 5")
    assert observed.numbers("pennon_operation_retries_total") == {(): 1}
    assert pennon.dataset(uri).count_rows() == 5


def test_requests_of_a_local_store_have_the_names_of_lance(observed: Observed, uri: str) -> None:
    pennon.write_dataset(ROWS, uri)
    pennon.dataset(uri).to_table()
    requests = observed.numbers("lance_object_store_requests_total")
    assert requests[("base", "file"), ("operation", "put")] >= 2
    assert requests[("base", "file"), ("operation", "get")] >= 1
    carried = observed.numbers("lance_object_store_request_bytes_total")
    written = sum(each.stat().st_size for each in Path(uri).rglob("*") if each.is_file())
    assert carried[("base", "file"), ("operation", "put")] >= written / 2
    assert set(observed.numbers("lance_object_store_in_flight_requests").values()) == {0}


def test_failed_requests_are_counted_as_errors(observed: Observed, tmp_path: Path) -> None:
    with pytest.raises(pennon.errors.NotFoundError):
        pennon.io.open_store(str(tmp_path)).info("nothing")
    assert observed.numbers("lance_object_store_errors_total") == {
        (("base", "file"), ("operation", "head")): 1
    }


def test_histograms_are_cumulative_buckets_as_those_of_prometheus(
    observed: Observed, uri: str
) -> None:
    pennon.write_dataset(ROWS, uri)
    found = observed.numbers("pennon_commit_duration_seconds_bucket")
    counts = {dict(names)["le"]: number for names, number in found.items()}
    assert counts["+Inf"] == 1
    assert sorted(counts.values()) == [counts[bound] for bound in sorted(counts, key=float)]


def test_progress_of_an_operation_is_a_gauge(observed: Observed, uri: str) -> None:
    table = pennon.write_dataset(ROWS, uri, max_rows_per_file=2)
    table.delete("id % 2 = 0")
    done = observed.numbers("pennon_progress_done")
    assert list(done) == [(("operation", "Deleting rows"),)]
    assert done == observed.numbers("pennon_progress_total")


def test_instrument_called_twice_counts_once(observed: Observed, uri: str) -> None:
    observed.instrument()
    pennon.write_dataset(ROWS, uri)
    assert observed.numbers("pennon_commits_total") == {(("operation", "Overwrite"),): 1}


def test_otel_is_not_loaded_by_import_of_pennon(uri: str) -> None:
    program = (
        "import sys, pyarrow as pa, pennon\n"
        f"pennon.write_dataset(pa.table({{'id': [1]}}), {uri!r}).to_table()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_otel_without_its_package_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "try:\n    import pennon.otel\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "pip install 'pennon[otel]'" in done.stdout


def test_native_names_of_pylance_give_the_same_numbers(uri: str) -> None:
    assert native.register_lance_metrics_recorder()
    try:
        pennon.write_dataset(ROWS, uri)
        points = {
            (each.name, *each.attributes.values()): each for each in native.snapshot_lance_metrics()
        }
        names = {each.name for each in native.lance_metrics_catalog()}
    finally:
        pennon.otel.uninstrument()
    assert points["pennon_commits_total", "Overwrite"].value == 1
    histogram = points["pennon_commit_duration_seconds", "Overwrite"]
    assert histogram.count == 1
    assert histogram.buckets[-1] == ("+Inf", 1)
    assert "lance_object_store_requests_total" in names
    assert native.snapshot_lance_metrics() == []
