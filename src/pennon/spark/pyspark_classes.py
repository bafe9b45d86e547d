"""Classes of PySpark that its older releases lack, with stand-ins, so that all else works there.

Spark 4.0 has no filters for data sources, and none of the newest types; Spark 3.5 has no data sources in Python at all.
A stand-in of a type has no values: whatever is tested for it is of another type.  Those of filters are filters, for
we translate conditions to them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import __version__ as _release
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from pennon.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import datasource as ds
    from pyspark.sql.types import GeographyType, GeometryType, TimeType, VariantType
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult
else:
    from pyspark.sql import types as _types
    from pyspark.sql import udtf as _table_functions

    try:
        from pyspark.sql import datasource as _data_sources
    except ImportError:  # Spark 3.5
        _data_sources = None

    class Filter:
        """A condition on one column, where Spark has no such class."""

    @dataclass(frozen=True)
    class _OfColumn(Filter):
        attribute: tuple[str, ...]

    @dataclass(frozen=True)
    class _OfValue(Filter):
        attribute: tuple[str, ...]
        value: Any

    @dataclass(frozen=True)
    class _OfFilter(Filter):
        child: Filter

    _BASES = {
        **dict.fromkeys(("EqualTo", "EqualNullSafe", "In"), _OfValue),
        **dict.fromkeys(("GreaterThan", "GreaterThanOrEqual"), _OfValue),
        **dict.fromkeys(("LessThan", "LessThanOrEqual"), _OfValue),
        **dict.fromkeys(("StringStartsWith", "StringEndsWith", "StringContains"), _OfValue),
        **dict.fromkeys(("IsNull", "IsNotNull"), _OfColumn),
        "Not": _OfFilter,
    }

    class _DataSources:
        """The module `pyspark.sql.datasource`; what it lacks is a stand-in."""

        def __getattr__(self, name: str) -> type:
            if name.startswith("_"):
                raise AttributeError(name)
            found = getattr(_data_sources, name, None)
            if found is None:
                found = _stand_in(name)
            setattr(self, name, found)
            return found

    def _stand_in(name: str) -> type:
        if name == "Filter":
            return Filter
        bases = (_BASES.get(name, object),)
        return type(name, bases, {"__module__": __name__, "__doc__": "Is not in this Spark."})

    ds = _DataSources()
    GeographyType, GeometryType, TimeType, VariantType = (
        getattr(_types, name, None) or _stand_in(name)
        for name in ("GeographyType", "GeometryType", "TimeType", "VariantType")
    )
    AnalyzeArgument, AnalyzeResult = (
        getattr(_table_functions, name, None) or _stand_in(name)
        for name in ("AnalyzeArgument", "AnalyzeResult")
    )

__all__ = [
    "RELEASE",
    "AnalyzeArgument",
    "AnalyzeResult",
    "GeographyType",
    "GeometryType",
    "TimeType",
    "VariantType",
    "check_release",
    "ds",
    "push_filters",
    "to_arrow",
]

_IN_UTC: Final[Mapping[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
)
"""How `to_arrow_type` is asked for timestamps in UTC; Spark 4.0 knows no others."""
RELEASE: Final = tuple(int(part) for part in _release.split(".")[:2])
"""The release of PySpark: ``(4, 1)``."""


def check_release(needed: tuple[int, int], title: str, instead: str = "") -> None:
    """Raise UnsupportedError if PySpark is older than a feature needs; ``instead`` is what there is in its place."""
    if needed > RELEASE:
        have, need = (".".join(map(str, each)) for each in (RELEASE, needed))
        hint = f": {instead}" if instead else ""
        message = f"{title} needs Spark {need}; this is Spark {have}{hint}"
        raise UnsupportedError(message)


def to_arrow(kind: DataType) -> pa.DataType:
    """Return the Arrow type in which Spark hands over values of a type; that of timestamps has the zone UTC.

    Raises what PySpark does, for a type that it does not hand over.
    """
    return to_arrow_type(kind, **_IN_UTC)


def push_filters() -> Any:
    """Return the method by which Spark hands filters to the reader of a data source; None where it hands none."""
    return getattr(ds.DataSourceReader, "pushFilters", None)
