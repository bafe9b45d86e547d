"""Data files by themselves, with the names of ``lance.file``; imported when they are first named."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from pennon.file.describe import LanceBufferDescriptor as LanceBufferDescriptor
    from pennon.file.describe import LanceColumnMetadata as LanceColumnMetadata
    from pennon.file.describe import LanceFileMetadata as LanceFileMetadata
    from pennon.file.describe import LanceFileStatistics as LanceFileStatistics
    from pennon.file.describe import LancePageMetadata as LancePageMetadata
    from pennon.file.facade import LanceFileReader as LanceFileReader
    from pennon.file.facade import LanceFileWriter as LanceFileWriter
    from pennon.file.facade import ReaderResults as ReaderResults
    from pennon.file.facade import stable_version as stable_version

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ReaderResults",
    "stable_version",
]
_IN_FACADE = ("LanceFileReader", "LanceFileWriter", "ReaderResults", "stable_version")


def __getattr__(name: str) -> _Any:
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = "facade" if name in _IN_FACADE else "describe"
    return getattr(_import_module(f"pennon.file.{module}"), name)
