"""Fixtures of commits that a caller makes by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.ops.commit_checks.hand_made import WAYS, Sent


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "x.lance")


@pytest.fixture(params=WAYS)
def sent(request: pytest.FixtureRequest) -> Sent:
    """Return a way that fragments take from the writer to who commits."""
    return WAYS[request.param]
