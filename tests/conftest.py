"""What all tests share: markers by folder, one worker for Spark, reproducible examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent

settings.register_profile(
    "pennon", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("pennon")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and put Spark's first: they are one long queue on one worker."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in {"spark", "interop"}:
            item.add_marker(folder)
        if folder == "spark":
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
