"""The oracles, started once for all tests that compare with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.oracle import MIDDLE, NEWEST, OLDEST, Oracle


@pytest.fixture(scope="session")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Oracle]]:
    """All oracles by release; each starts at its first use."""
    started = _Oracles(tmp_path_factory)
    yield started
    for oracle in started.values():
        oracle.close()


class _Oracles(dict[str, Oracle]):
    """Oracles by release, started when first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, release: str) -> Oracle:
        self[release] = Oracle.start(release, self._folders.mktemp(f"oracle-{release}"))
        return self[release]


@pytest.fixture
def newest(oracles: dict[str, Oracle]) -> Oracle:
    """The newest oracle."""
    return oracles[NEWEST]


@pytest.fixture(params=[NEWEST, OLDEST])
def oracle(oracles: dict[str, Oracle], request: pytest.FixtureRequest) -> Oracle:
    """Each oracle of file version 2.0 in turn."""
    return oracles[request.param]


@pytest.fixture(params=[NEWEST, MIDDLE])
def oracle_2_1(oracles: dict[str, Oracle], request: pytest.FixtureRequest) -> Oracle:
    """Each oracle of file version 2.1 in turn."""
    return oracles[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for datasets."""
    return tmp_path
