"""Packages that not everybody needs, and the extra of Pennon that installs each."""

from __future__ import annotations

from typing import Final

_EXTRAS: Final = {
    "datafusion": "sql",
    "datasets": "huggingface",
    "huggingface_hub": "huggingface",
    "lance_namespace": "namespace",
    "opentelemetry": "otel",
    "pandas": "pandas",
    "polars": "polars",
    "pyspark": "spark",
    "torch": "torch",
}


def not_installed(package: str, what: str) -> ModuleNotFoundError:
    """Return the error for something that needs a package which is not installed; it says what to install."""
    message = (
        f"{what} needs the package {package}, which is not installed: "
        f"pip install 'pennon[{_EXTRAS[package]}]'"
    )
    return ModuleNotFoundError(message, name=package)
