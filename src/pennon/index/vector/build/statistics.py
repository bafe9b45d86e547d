"""Statistics of a vector index, in pylance's words.

Source: reference index-vector, 7.2 and 7.3.
"""

from __future__ import annotations

import os
from typing import Any, Final

from pennon.index.files import IndexFiles
from pennon.index.vector.build.opened_index import StoredIndex, open_stored
from pennon.index.vector.details_wire import settings_of
from pennon.index.vector.layout import INDEX
from pennon.index.vector.metric import L2
from pennon.index.vector.settings import VectorSettings

_CENTROIDS: Final = "LANCE_INCLUDE_VECTOR_CENTROIDS"
_CODEBOOK: Final = ("codebook_position", "codebook_tensor")


def vector_statistics(files: IndexFiles, root: str) -> dict[str, Any]:
    """Return what `LanceDataset.index_statistics` says of a segment; ``root``: the table's URI.

    Raises FormatError, NotFoundError, and UnsupportedError for older layouts.
    """
    stored = open_stored(files)
    settings = stored.model.settings
    found = {
        "index_type": settings.kind,
        "uuid": files.folder.rpartition("/")[2],
        "uri": f"{root}/{files.folder}/{INDEX}",
        "metric_type": settings.metric.name,
        "num_partitions": stored.model.partitions,
        "sub_index": _sub_index(stored),
        "partitions": [{"size": size} for size in stored.parts.lengths.tolist()],
        "loss": stored.model.loss,
        "index_file_version": "V3",
    }
    if os.environ.get(_CENTROIDS, "true").lower() != "false":
        found["centroids"] = stored.model.centroids.tolist()
    return found


def _sub_index(stored: StoredIndex) -> dict[str, Any]:
    settings = stored.model.settings
    said = {k: v for k, v in stored.coder.metadata(None).items() if k not in _CODEBOOK}
    is_normal = settings.quantizer == "PQ" and settings.metric.normalises
    said["metric_type"] = (L2 if is_normal else settings.metric).name
    said["index_type"] = settings.quantizer
    if settings.graph is not None:
        said = {**stored.first_graph(), **said, "index_type": "HNSW"}
    return said


def vector_details_of(details: bytes) -> dict[str, Any]:
    """Return what the entry of an index says of it; nothing, if that is nothing."""
    settings = settings_of(details)
    return {} if settings is None else _shown(settings)


def _shown(settings: VectorSettings) -> dict[str, Any]:
    found: dict[str, Any] = {"metric_type": settings.metric.name.upper()}
    if settings.partition_rows:
        found["target_partition_size"] = settings.partition_rows
    if settings.graph is not None:
        graph = settings.graph
        found["hnsw"] = {
            "max_connections": graph.m,
            "construction_ef": graph.ef_construction,
            "max_level": graph.max_level,
        }
    codes: dict[str, dict[str, Any]] = {
        "PQ": {"type": "pq", "num_bits": settings.bits, "num_sub_vectors": settings.sub_vectors},
        "SQ": {"type": "sq", "num_bits": 8},
        "RQ": {"type": "rq", "num_bits": settings.bits, "rotation_type": "fast"},
    }
    if settings.quantizer in codes:
        found["compression"] = codes[settings.quantizer]
    return found
