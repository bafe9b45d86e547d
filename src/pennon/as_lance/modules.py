"""The module of Pennon that stands for each module of pylance."""

from __future__ import annotations

from typing import Final

PYLANCE_RELEASE: Final = "14.0.2"
"""The release of pylance whose names Pennon has; ``lance.__version__`` in a program that runs as one of pylance's."""

_SAME_NAME = (
    "arrow",
    "bitmap",
    "blob",
    "commit",
    "dataset",
    "debug",
    "file",
    "fragment",
    "indices",
    "io",
    "log",
    "namespace",
    "optimize",
    "otel",
    "progress",
    "pydantic",
    "query",
    "sampler",
    "schema",
    "udf",
    "util",
    "vector",
)

MODULES: Final = {
    **{f"lance.{name}": f"pennon.{name}" for name in _SAME_NAME},
    "lance._arrow.bf16": "pennon.arrow",
    "lance._arrow": "pennon.arrow",
    "lance._dataset": "pennon.as_lance.dataset_parts",
    "lance._dataset.cache": "pennon.as_lance.cache",
    "lance._dataset.sharded_batch_iterator": "pennon.as_lance.sharded_batches",
    "lance.dependencies": "pennon.as_lance.dependencies",
    "lance.hf": "pennon.as_lance.hf",
    "lance.indices.builder": "pennon.indices.builder",
    "lance.indices.ivf": "pennon.indices.ivf",
    "lance.indices.pq": "pennon.indices.pq",
    "lance.lance": "pennon.as_lance.native",
    "lance.lance.debug": "pennon.debug",
    "lance.lance.fragment": "pennon.fragment",
    "lance.lance.indices": "pennon.indices",
    "lance.lance.optimize": "pennon.optimize",
    "lance.lance.schema": "pennon.schema",
    "lance.lance.trace": "pennon.as_lance.tracing",
    "lance.torch": "pennon.as_lance.torch",
    "lance.torch.bench_utils": "pennon.as_lance.torch.bench_utils",
    "lance.torch.data": "pennon.as_lance.torch.data",
    "lance.torch.dist": "pennon.as_lance.torch.dist",
    "lance.torch.distance": "pennon.as_lance.torch.distance",
    "lance.tracing": "pennon.as_lance.tracing",
    "lance.types": "pennon.as_lance.types",
}
"""Full names of pylance's modules, and of ours.  A name that is not here does not exist, as far as Pennon goes."""
