"""A setup of OpenTelemetry for workers, which writes each span as a line of JSON to the file ``SPANS``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

import pennon.otel


class _Lines(SpanExporter):
    """Appends spans to a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write the name and attributes of each span."""
        with self._file.open("a") as file:
            for span in spans:
                file.write(json.dumps([span.name, dict(span.attributes or {})]) + "\n")
        return SpanExportResult.SUCCESS


def start() -> None:
    """Make spans of this process."""
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(_Lines(Path(os.environ["SPANS"]))))
    pennon.otel.instrument(tracer_provider=tracers)


def main(uri: str) -> None:
    """Write, read and change a table by Spark."""
    from pyspark.sql import SparkSession

    from pennon.spark import LanceTable
    from tests.spark.modes import CONF

    builder = SparkSession.builder.master("local[2]")
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.range(0, 10, 1, 2).write.format("lance").mode("append").save(uri)
    spark.read.format("lance").load(uri).collect()
    LanceTable.forPath(spark, uri).delete("id < 3")
    spark.stop()


if __name__ == "__main__":
    main(os.environ["TABLE"])
