"""Arguments as callers give them: columns, row numbers, versions, options of pyarrow's scanners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.errors import UnsupportedError


def row_numbers(indices: Any) -> npt.NDArray[np.int64]:
    """Return row numbers as int64.

    Taken are lists, ranges, numpy arrays and Arrow arrays of integers.  Raises TypeError for
    anything else, NULLs among them, OverflowError for a number below 0 or beyond 63 bits.
    """
    values = _integers(indices)
    is_signed = values.dtype.kind == "i"
    if len(values) and (values.min() < 0 if is_signed else int(values.max()) >= 1 << 63):
        message = "row numbers are 0 or greater"
        raise OverflowError(message)
    return values.astype(np.int64)


def row_ids(indices: Any) -> npt.NDArray[np.uint64]:
    """Return row ids or addresses as uint64; raises like `row_numbers`."""
    values = _integers(indices)
    if len(values) and int(values.min()) < 0:
        message = "row ids are 0 or greater"
        raise OverflowError(message)
    return values.astype(np.uint64)


def _integers(indices: Any) -> npt.NDArray[Any]:
    if isinstance(indices, (pa.Array, pa.ChunkedArray)):
        if indices.null_count:
            message = "row numbers must not be NULL"
            raise TypeError(message)
        indices = indices.to_numpy(zero_copy_only=False)
    elif not isinstance(indices, np.ndarray):
        indices = list(indices)
        if not indices:
            return np.empty(0, np.int64)
    values = np.asarray(indices)
    if not values.size:
        return np.empty(0, np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        message = f"row numbers must be a sequence of integers, got {values.dtype} values"
        raise TypeError(message)
    return values


def check_columns(columns: Any) -> tuple[str, ...] | Mapping[str, str] | None:
    """Return the names of columns, or a mapping from new names to old ones.

    Raises TypeError for anything else, above all for one name that is not in a list.
    """
    if columns is None or isinstance(columns, Mapping):
        return columns
    if not isinstance(columns, (list, tuple)):
        message = f"columns must be a list or a dict, got {type(columns).__name__}"
        raise TypeError(message)
    for name in columns:
        if not isinstance(name, str):
            message = f"a column is named by text, got {type(name).__name__}"
            raise TypeError(message)
    return tuple(columns)


_ARROW_OPTIONS = {"fragment_scan_options", "use_threads", "cache_metadata", "memory_pool"}
_LATER = frozenset(
    [
        "allow_external_blob_outside_bases",
        "base_store_params",
        "blob_pack_file_size_threshold",
        "external_blob_mode",
        "index_cache_backend",
        "initial_bases",
        "metadata_cache_backend",
        "namespace_client_managed_versioning",
        "session",
        "store_registry",
        "target_all_bases",
        "target_bases",
        "_inner_reader",
        "_inner_writer",
    ]
)
"""Options of pylance 14.0.2 that one door or another of ours does not have."""
_CREDENTIALS_ONLY = {"namespace_client", "table_id"}
"""Options of pylance that renew the credentials of a place that is named beside them: nothing to do here."""
_HARMLESS = {"external_blob_mode": "reference"}


def check_arrow_options(options: Mapping[str, Any], scanner: Callable[..., Any]) -> None:
    """Raise TypeError for an option that neither pylance's nor pyarrow's scanners have."""
    for name in sorted(options.keys() - _ARROW_OPTIONS):
        raise unknown_option(scanner.__name__, name, signature(scanner).parameters)


def check_options(
    options: Mapping[str, Any], function: Callable[..., Any], door: str | None = None
) -> None:
    """Raise TypeError for an option that a function does not have; ``door``: what users call it."""
    if not options:
        return
    is_method = hasattr(function, "__self__")
    known = _parameters_of(getattr(function, "__func__", function))[is_method:]
    for name in options:
        if name not in known:
            raise unknown_option(door or function.__name__, name, known)


@cache
def _parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters: to work them out takes a tenth of a search in an index."""
    return tuple(signature(function).parameters)


def refuse(options: Mapping[str, Any], door: Callable[..., Any] | str, *, known: Any = ()) -> None:
    """Refuse what is left of the options that a door was given.

    ``door``: the function, or its name where ``known`` are its options.  Raises UnsupportedError for
    one of pylance's that is set, TypeError for any other name: it is misspelt.
    """
    for name, value in options.items():
        if name in _CREDENTIALS_ONLY:
            continue
        if name not in _LATER:
            if isinstance(door, str):
                raise unknown_option(door, name, known)
            title = door.__qualname__.removesuffix(".__init__")
            raise unknown_option(title, name, signature(door).parameters)
        is_off = value is None or value is False
        if not is_off and not (name in _HARMLESS and value == _HARMLESS[name]):
            message = f"the option {name!r} is not supported yet"
            raise UnsupportedError(message)


def unknown_option(door: str, name: str, known: Iterable[str]) -> TypeError:
    """Return the error for an option that a door does not have, with the nearest that it has."""
    hint = did_you_mean(name, (each for each in known if each != "self"))
    return TypeError(f"{door}() got an unexpected keyword argument {name!r}{hint}")


def version_number(version: int | None) -> int | None:
    """Return the number of a version; raises TypeError for what is none."""
    if version is None or (isinstance(version, int) and not isinstance(version, bool)):
        return version
    message = f"a version is a number, got {type(version).__name__}"
    raise TypeError(message)
