"""Build the wheel and the source archive into ``dist/`` with the locked build tools."""

from __future__ import annotations

from pathlib import Path

from setuptools.build_meta import build_sdist, build_wheel

DIST = Path("dist")


def main() -> None:
    """Build both, and print their names."""
    DIST.mkdir(exist_ok=True)
    for build in (build_sdist, build_wheel):
        print(DIST / build(str(DIST)))


if __name__ == "__main__":
    main()
