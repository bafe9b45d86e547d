"""Names of ``lance.dependencies``: packages that may be absent, imported when they are first used."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from pennon.errors import ColumnTypeError


class _LazyModule(ModuleType):
    """A module that is imported when an attribute of it is first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and self.__name__ not in sys.modules:
            raise AttributeError(name)
        try:
            module = import_module(self.__name__)
        except ImportError as error:
            message = f"{self.__name__}.{name} needs the package {self.__name__!r}: pip install {self.__name__}"
            raise ModuleNotFoundError(message, name=self.__name__) from error
        if hasattr(module, name):
            return getattr(module, name)
        if importlib.util.find_spec(f"{self.__name__}.{name}"):
            return import_module(f"{self.__name__}.{name}")
        message = f"module {self.__name__!r} has no attribute {name!r}"
        raise AttributeError(message)


def _lazy(name: str) -> tuple[ModuleType, bool]:
    """Return a module, or what imports it when it is used, and whether it is installed."""
    if name in sys.modules:
        return sys.modules[name], True
    return _LazyModule(name), importlib.util.find_spec(name) is not None


numpy, _NUMPY_AVAILABLE = _lazy("numpy")
pandas, _PANDAS_AVAILABLE = _lazy("pandas")
polars, _POLARS_AVAILABLE = _lazy("polars")
datasets, _HUGGING_FACE_AVAILABLE = _lazy("datasets")
_pydantic, _PYDANTIC_AVAILABLE = _lazy("pydantic")
_torch, _TORCH_AVAILABLE = _lazy("torch")
torch: Any = _torch


def _is_of(obj: Any, package: str, *, check_type: bool = True) -> bool:
    """Say whether an object, or a class, is of a package or derived from one of its classes."""
    cls = type(obj) if check_type else obj
    return any(base.__module__.partition(".")[0] == package for base in cls.__mro__)


def _check_for_numpy(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "numpy", check_type=check_type)


def _check_for_pandas(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "pandas", check_type=check_type)


def _check_for_polars(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "polars", check_type=check_type)


def _check_for_torch(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "torch", check_type=check_type)


def _check_for_hugging_face(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "datasets", check_type=check_type)


def _check_for_pydantic(obj: Any, *, check_type: bool = True) -> bool:
    return _is_of(obj, "pydantic", check_type=check_type)


def _is_pydantic_base_model(obj: Any) -> bool:
    return _is_pydantic_base_model_class(type(obj))


def _is_pydantic_base_model_class(obj: Any) -> bool:
    pydantic = sys.modules.get("pydantic")  # whoever has a model has imported it
    return pydantic is not None and isinstance(obj, type) and issubclass(obj, pydantic.BaseModel)


def model_to_dict(obj: Any) -> dict[str, Any]:
    """Return the fields of a pydantic model (of version 2 or 1) as a dict."""
    found: dict[str, Any] = obj.model_dump() if hasattr(obj, "model_dump") else obj.dict()
    return found


def _validate_pydantic_list(data: Any, model_class: type) -> None:
    """Raise ColumnTypeError (a TypeError) unless data is a list of objects of exactly this class."""
    if not isinstance(data, list):
        message = f"models are written as a list, got {type(data).__name__}"
        raise ColumnTypeError(message)
    for number, item in enumerate(data):
        if type(item) is not model_class:
            message = f"data[{number}] is a {type(item).__name__}, not a {model_class.__name__}: a list has models of one class"
            raise ColumnTypeError(message)
