"""The details of a vector index in its manifest entry."""

from __future__ import annotations

from typing import Any, Final, cast

from google.protobuf.message import DecodeError

from pennon.index.vector.metric import metric_numbered
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.proto import vector_details_pb2

_HINTS: Final = (
    ("lance.ivf.sample_rate", "lance.pq.sample_rate", "lance.sq.sample_rate"),
    ("lance.ivf.max_iters", "lance.pq.max_iters"),
)


def vector_details(settings: VectorSettings) -> bytes:
    """Return what the entry of an index says of it."""
    message = vector_details_pb2.VectorIndexDetails()
    message.metric = cast(
        "vector_details_pb2.VectorIndexDetails.Metric.ValueType", settings.metric.number
    )
    message.target_partition_size = settings.partition_rows or 0
    if settings.graph is not None:
        graph = settings.graph
        message.hnsw.m, message.hnsw.max_level = graph.m, graph.max_level
        message.hnsw.ef_construction = graph.ef_construction
    if settings.quantizer == "PQ":
        message.pq.num_bits, message.pq.num_sub_vectors = settings.bits, settings.sub_vectors
    elif settings.quantizer == "SQ":
        message.sq.num_bits = 8
    elif settings.quantizer == "RQ":
        message.rq.num_bits = settings.bits
    else:
        message.flat.SetInParent()
    rates, iterations = _HINTS
    message.hints.update(dict.fromkeys(rates, str(settings.sample_rate)))
    message.hints.update(dict.fromkeys(iterations, str(settings.max_iters)))
    return message.SerializeToString(deterministic=True)


def settings_of(details: bytes) -> VectorSettings | None:
    """Return how an index was made, as its entry says; None where that says nothing."""
    message = vector_details_pb2.VectorIndexDetails()
    try:
        message.ParseFromString(details)
    except DecodeError:
        return None
    found = [
        name
        for name, is_there in (
            ("PQ", message.HasField("pq")),
            ("SQ", message.HasField("sq")),
            ("RQ", message.HasField("rq")),
            ("FLAT", message.HasField("flat")),
        )
        if is_there
    ]
    metric = metric_numbered(message.metric)
    if len(found) != 1 or metric is None:
        return None
    graph = message.hnsw if message.HasField("hnsw") else None
    bits = {"PQ": message.pq.num_bits, "RQ": message.rq.num_bits}.get(found[0]) or 8
    return VectorSettings(
        f"IVF_{'' if graph is None else 'HNSW_'}{found[0]}",
        metric,
        partition_rows=message.target_partition_size or None,
        sub_vectors=message.pq.num_sub_vectors,
        bits=bits,
        sample_rate=_hint(message.hints, "lance.ivf.sample_rate", 256),
        max_iters=_hint(message.hints, "lance.ivf.max_iters", 50),
        graph=graph and Graph(graph.m, graph.ef_construction, graph.max_level),
    )


def _hint(hints: Any, name: str, default: int) -> int:
    text = hints.get(name, "")
    return int(text) if text.isdigit() and 0 < int(text) < 1 << 31 else default
