"""Metrics as values: names, numbers, pickles."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from pennon.errors import ArgumentError
from pennon.index.vector.metric import (
    COSINE,
    DOT,
    HAMMING,
    L2,
    METRICS,
    check_metric,
    default_metric,
    metric_named,
    metric_numbered,
    metric_of,
)
from pennon.proto.vector_details_pb2 import VectorIndexDetails


def test_metric_of_name_in_any_case() -> None:
    names = ("L2", "Euclidean", "COSINE", "dot", "Hamming")
    assert [metric_of(name) for name in names] == [L2, L2, COSINE, DOT, HAMMING]
    assert [str(each) for each in METRICS] == ["l2", "cosine", "dot", "hamming"]
    assert metric_named("foo") is None
    with pytest.raises(ArgumentError, match=r"'foo' is not .* euclidean, cosine, dot and hamming$"):
        metric_of("foo")


def test_metric_of_vectors_of_bytes_is_hamming() -> None:
    assert default_metric(pa.uint8()) is HAMMING
    assert default_metric(pa.int8()) is L2
    check_metric(HAMMING, pa.int8())
    with pytest.raises(ArgumentError, match="hamming does not support float vectors"):
        check_metric(HAMMING, pa.float32())


def test_metric_numbers_equal_the_protobuf_enum() -> None:
    said = {each.name.upper(): each.number for each in METRICS}
    assert said == dict(VectorIndexDetails.Metric.items())
    assert [metric_numbered(each.number) for each in METRICS] == list(METRICS)
    assert metric_numbered(len(METRICS)) is None


def test_metric_unpickled_is_the_same_value() -> None:
    for each in METRICS:
        assert pickle.loads(pickle.dumps(each)) is each
