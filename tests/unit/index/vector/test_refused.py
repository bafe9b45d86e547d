"""Invalid contents of vector index files are refused, with the reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.errors import FormatError, UnsupportedError
from pennon.index.vector.file_settings import Settings, metric_of, parsed
from pennon.index.vector.hnsw_graph import Graph, GraphPlan
from pennon.index.vector.metric import HAMMING, L2, Metric
from pennon.index.vector.quantizer import Pairs
from pennon.index.vector.quantizers.pq import ProductQuantizer
from pennon.index.vector.quantizers.rq import RabitQuantizer
from pennon.index.vector.quantizers.sq import ScalarQuantizer
from pennon.index.vector.wire import parse_index, parse_partitions, parse_tensor
from pennon.proto import vector_index_pb2 as pb

CENTROIDS = np.zeros((2, 8), np.float32)


def tensor(shape: list[int], size: int, kind: int = 2) -> pb.Tensor:
    return pb.Tensor(data_type=kind, shape=shape, data=bytes(size))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codebook", "bits", "parts", "metric", "why"),
    [
        (256 * 8, 8, 3, L2, "no 3 parts"),
        (256 * 8, 8, 0, L2, "no 0 parts"),
        (16 * 8, 4, 1, L2, "no 1 parts of 4 bits"),
        (256 * 4, 8, 4, L2, "a codebook of 1024 values"),
        (16 * 8, 8, 4, L2, "a codebook of 128 values"),
    ],
)
def test_invalid_codebooks_are_refused(
    codebook: int, bits: int, parts: int, metric: Metric, why: str
) -> None:
    with pytest.raises(FormatError, match=why):
        ProductQuantizer(
            np.zeros(codebook, np.float32),
            bits=bits,
            parts=parts,
            metric=metric,
            centroids=CENTROIDS,
            is_transposed=True,
        )


@pytest.mark.parametrize(("bits", "metric"), [(6, L2), (8, HAMMING), (1 << 31, L2)])
def test_unsupported_codebooks_are_refused(bits: int, metric: Metric) -> None:
    with pytest.raises(UnsupportedError, match="not read"):
        ProductQuantizer(
            np.zeros(8, np.float32),
            bits=bits,
            parts=4,
            metric=metric,
            centroids=CENTROIDS,
            is_transposed=True,
        )


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("is_transposed", [True, False])
def test_codes_are_the_same_by_rows_and_by_bytes(rows: int, is_transposed: bool) -> None:
    codes = np.random.default_rng(rows).integers(0, 256, (rows, 4), np.uint8)
    quantizer = ProductQuantizer(
        np.random.default_rng(1).normal(size=256 * 8).astype(np.float32),
        bits=8,
        parts=4,
        metric=L2,
        centroids=CENTROIDS,
        is_transposed=is_transposed,
    )
    stored = codes.T.reshape(rows, 4) if is_transposed else codes
    query = np.ones((1, 8), np.float32)
    asks = quantizer.asks(query)
    (tables,) = asks.at(np.array([1]), np.array([0])).queries
    expected = tables[np.arange(4), codes].sum(axis=1)
    for by_rows in (True, False):
        heaps = (
            np.empty((1, 9), np.float32),
            np.empty((1, 9), np.uint64),
            np.zeros(1, np.int64),
        )
        made = quantizer.codes_of(stored, by_rows=by_rows)
        numbers = np.arange(rows, dtype=np.uint64)
        one, first = np.array([1]), np.array([0])
        pairs = Pairs([made], [numbers], [None], first, one, first)
        asks.prepare(pairs).keep(heaps, pairs.as_one)
        assert heaps[2] == rows
        np.testing.assert_allclose(
            heaps[0][0, :rows], expected[heaps[1][0, :rows].astype(np.int64)], rtol=1e-6
        )


@pytest.mark.parametrize(
    ("values", "error", "why"),
    [
        ({"num_bits": 4}, UnsupportedError, "4 bits"),
        ({"dim": 9}, FormatError, "codes of 9 values"),
        ({"bounds": None}, FormatError, "says nothing of bounds"),
        ({"bounds": {"start": 0}}, FormatError, "end is None"),
        ({"bounds": {"start": 1, "end": 0.5}}, FormatError, "are none"),
        ({"bounds": {"start": -1e38, "end": 1e39}}, FormatError, "are none"),
        ({"bounds": {"start": "a", "end": 1}}, FormatError, "start is 'a'"),
    ],
)
def test_invalid_scalar_quantizer_settings_are_refused(
    values: dict[str, Any], error: type[Exception], why: str
) -> None:
    good = {"dim": 8, "num_bits": 8, "bounds": {"start": 0.0, "end": 1}}
    ScalarQuantizer(Settings(good, "f"), L2, 8)
    with pytest.raises(error, match=why):
        ScalarQuantizer(Settings(good | values, "f"), L2, 8)


@pytest.mark.parametrize(
    ("values", "error", "why"),
    [
        ({"num_bits": 10}, UnsupportedError, "10 bits"),
        ({"code_dim": 16}, UnsupportedError, "16 dimensions"),
        ({"query_estimator": "best"}, UnsupportedError, "'best'"),
        ({"query_estimator": None}, UnsupportedError, "'residual_query' of 5 bits"),
        ({"fast_rotation_signs": [1, 2, 3]}, FormatError, "3 bytes of signs"),
        ({"fast_rotation_signs": [1, 2, 3, 256]}, FormatError, "no list of bytes"),
        ({"fast_rotation_signs": "abcd"}, FormatError, "says nothing"),
    ],
)
def test_invalid_rabit_settings_are_refused(
    values: dict[str, Any], error: type[Exception], why: str
) -> None:
    good = {
        "num_bits": 5,
        "code_dim": 8,
        "query_estimator": "raw_query",
        "fast_rotation_signs": [1, 2, 3, 4],
    }
    RabitQuantizer(Settings(good, "f"), (), L2, CENTROIDS, None)
    with pytest.raises(error, match=why):
        RabitQuantizer(Settings(good | values, "f"), (), L2, CENTROIDS, None)
    with pytest.raises(FormatError, match="a matrix"):
        RabitQuantizer(Settings(good, "f"), (), L2, CENTROIDS, np.zeros((8, 9), np.float32))


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (tensor([2, 2, 2], 32), FormatError),
        (tensor([2, 2], 15), FormatError),
        (tensor([2, 0], 0), FormatError),
        (tensor([1 << 31, 1 << 31], 16), FormatError),
        (tensor([2, 2], 16, 6), UnsupportedError),
    ],
)
def test_invalid_tensors_are_refused(made: pb.Tensor, error: type[Exception]) -> None:
    with pytest.raises(error, match="a matrix"):
        parse_tensor(made.SerializeToString())


def test_matrices_of_short_floats() -> None:
    exact = np.array([[1.5, -2.0]], np.float32)
    data = (exact.view(np.uint32) >> 16).astype("<u2").tobytes()
    made = pb.Tensor(data_type=pb.Tensor.BFLOAT16, shape=[1, 2], data=data)
    assert parse_tensor(made.SerializeToString()).tolist() == exact.tolist()


def test_invalid_partitions_messages_are_refused() -> None:
    good = pb.Ivf(lengths=[3, 0, 4])
    assert parse_partitions(good.SerializeToString()).offsets.tolist() == [0, 3, 3]
    for bad in (
        pb.Ivf(lengths=[3], offsets=[0, 3]),
        pb.Ivf(lengths=[3], offsets=[1 << 63]),
        pb.Ivf(lengths=[3], centroids_tensor=tensor([2, 2], 16)),
        pb.Ivf(lengths=[3, 3], centroids=[1, 2, 3]),
    ):
        with pytest.raises(FormatError):
            parse_partitions(bad.SerializeToString())
    with pytest.raises(FormatError, match="not a valid message"):
        parse_partitions(b"\x12\xff")
    old = pb.Ivf(lengths=[3, 3], centroids=[1, 2, 3, 4])
    found = parse_partitions(old.SerializeToString()).centroids
    assert found is not None
    assert found.tolist() == [[1, 2], [3, 4]]


def test_partitions_message_with_centroids_tensor_is_parsed() -> None:
    made = pb.Ivf(lengths=[3, 4], centroids_tensor=tensor([2, 2], 16), loss=0.5)
    made.centroids_tensor.data = np.arange(4, dtype=np.float32).tobytes()
    data = made.SerializeToString()
    apart = pb.Ivf(centroids_tensor=pb.Tensor(data=made.centroids_tensor.data))
    made.centroids_tensor.ClearField("data")
    in_parts = made.SerializeToString() + apart.SerializeToString()
    for message in (data, pa.py_buffer(b"-" + data).slice(1), in_parts):
        found = parse_partitions(message)
        assert found.lengths.tolist() == [3, 4]
        assert found.loss == 0.5
        assert found.centroids is not None
        assert found.centroids.tolist() == [[0, 1], [2, 3]]


def test_truncated_partitions_message_is_refused() -> None:
    data = pb.Ivf(lengths=[3, 4], centroids_tensor=tensor([2, 2], 16), loss=0.5).SerializeToString()
    for end in range(len(data)):
        with suppress(FormatError):
            assert parse_partitions(data[:end]).loss is None
    for damage in (b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x22\x05\x12", b"\x23"):
        with pytest.raises(FormatError, match="not a valid message"):
            parse_partitions(data + damage)


def test_unknown_index_stages_are_refused() -> None:
    index = pb.Index()
    index.vector_index.stages.add().transform.SetInParent()
    with pytest.raises(UnsupportedError, match="'transform'"):
        parse_index(index.SerializeToString())


@pytest.mark.parametrize(
    "levels", [None, [], [0], [0, 9], [0, -1], [0, "3"], [0, 2.0], [0] * 2000, {"0": 1}]
)
def test_invalid_graph_levels_are_refused(levels: object) -> None:
    with pytest.raises(FormatError, match="levels of a graph"):
        GraphPlan.parse(Settings({"level_offsets": levels}, "f"), 8)


def test_invalid_graphs_are_refused() -> None:
    plan = GraphPlan.parse(Settings({"level_offsets": [0, 2], "entry_point": 1}, "f"), 2)
    nodes = pa.array([0, 1], pa.uint32())
    near = pa.array([[1], [0]], pa.list_(pa.uint32()))
    assert Graph.of([nodes, near], plan, 2).neighbours.tolist() == [1, 0]
    wide = near.cast(pa.list_(pa.uint64()))
    assert Graph.of([nodes.cast(pa.uint64()), wide], plan, 2).nodes.tolist() == [0, 1]
    bad: list[list[Any]] = [
        [nodes, nodes],
        [nodes, pa.array([[1], None], near.type)],
        [nodes, pa.array([[1], [None]], near.type)],
        [nodes, pa.array([[1], [2]], near.type)],
        [nodes, near.cast(pa.list_(pa.int32()))],
        [nodes.cast(pa.int64()), near],
        [pa.array([0, 1 << 40], pa.uint64()), near],
        [nodes, pa.array([[1], [1 << 40]], pa.list_(pa.uint64()))],
    ]
    for columns in bad:
        with pytest.raises(FormatError):
            Graph.of(columns, plan, 2)


def test_invalid_metric_names_and_settings_are_refused() -> None:
    assert metric_of("Euclidean", "f") == L2
    with pytest.raises(FormatError, match="'far'"):
        metric_of("far", "f")
    for text in ("{", "[" * 100_000, ""):
        with pytest.raises(FormatError, match="not JSON"):
            parsed(text, "it")
    for value in (None, "3", -1, 1 << 40, 1.0, True):
        with pytest.raises(FormatError, match="no number"):
            Settings({"n": value}, "f").number("n")
