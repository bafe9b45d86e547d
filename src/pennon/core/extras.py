"""Packages that not everybody needs, and what installs each: an extra of Pennon, or the package itself."""

from __future__ import annotations

from typing import Final

_INSTALLED_BY: Final = {
    "datafusion": "pennon[sql]",
    "datasets": "pennon[huggingface]",
    "huggingface_hub": "pennon[huggingface]",
    "lance_namespace": "pennon[namespace]",
    "opentelemetry": "pennon[otel]",
    "pandas": "pandas>=2.2",
    "polars": "polars>=1.30",
    "pyspark": "pennon[spark]",
    "torch": "pennon[torch]",
}
"""The extra of each package; a release where there is none, because users of it have it already."""


def not_installed(package: str, what: str) -> ModuleNotFoundError:
    """Return the error for something that needs a package which is not installed; it says what to install."""
    message = (
        f"{what} needs the package {package}, which is not installed: "
        f"pip install '{_INSTALLED_BY[package]}'"
    )
    return ModuleNotFoundError(message, name=package)
