"""Data files by themselves, with the names of ``lance.file``."""

from typing import TYPE_CHECKING

from pennon.names import lazy_names as _lazy_names

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
    from pennon.file.session import LanceFileSession as LanceFileSession
    from pennon.file.session import ListResult as ListResult

__all__ = [
    "LanceBufferDescriptor",
    "LanceColumnMetadata",
    "LanceFileMetadata",
    "LanceFileReader",
    "LanceFileSession",
    "LanceFileStatistics",
    "LanceFileWriter",
    "LancePageMetadata",
    "ListResult",
    "ReaderResults",
    "stable_version",
]

if not TYPE_CHECKING:  # a type checker reads the imports above
    __getattr__ = _lazy_names(__name__, frozenset(__all__))
