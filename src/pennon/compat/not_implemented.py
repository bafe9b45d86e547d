"""Names of pylance that Pennon does not have yet, so that asking for one says so.

An absent method of ours is an absent attribute, as Python programs expect: ``hasattr`` is False.
But whoever calls one is told that it is pylance's and not here yet, rather than that it never was.
docs/compat.md lists them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pennon.errors import UnsupportedError

MODULE = """
    BlobDescriptor BlobDescriptorArrayBuilder
    CompactedSsTable DedicatedBlobWriter evaluate_sharding_spec
    ExecutionPlan FFILanceTableProvider FtsToken
    LsmPointLookupPlanner LsmScanner LsmVectorSearchPlanner
    PackedBlobWriter ShardingField ShardingSpec
    ShardSnapshot ShardWriter simd_info tokenize
"""
DATASET = """
    initialize_mem_wal io_stats_incremental io_stats_snapshot
    mem_wal_writer
    storage_options_accessor
"""
OPERATION = """
    DataOverlay DataOverlayFile DataOverlayGroup
"""

LATER: dict[str, frozenset[str]] = {
    "pennon": frozenset(MODULE.split()),
    "LanceDataset": frozenset(DATASET.split()),
    "LanceOperation": frozenset(OPERATION.split()),
}
"""The names of pylance 14.0.2 that are missing, by the class or module that has them."""


class NotYetError(UnsupportedError, AttributeError):
    """A method or class of pylance's that Pennon does not have yet."""


def missing(owner: str, name: str, asked: object = None) -> NoReturn:
    """Raise NotYetError for a name that pylance has, AttributeError for any other.

    ``asked``: the object that lacks the name; Python's tracebacks then suggest the nearest of its names.
    """
    if name in LATER[owner]:
        message = f"{owner}.{name} is not supported yet"
        raise NotYetError(message)
    message = f"{owner!r} has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=asked)


class Unfinished(type):
    """The type of classes that lack some of pylance's attributes."""

    if not TYPE_CHECKING:  # a type checker finds absent attributes itself

        def __getattr__(cls, name: str) -> Any:
            """Say of an absent attribute whether pylance has it."""
            owner = next((known.__name__ for known in cls.__mro__ if known.__name__ in LATER), None)
            if owner is None:
                message = f"type object {cls.__name__!r} has no attribute {name!r}"
                raise AttributeError(message, name=name, obj=cls)
            return missing(owner, name, cls)
