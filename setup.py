"""Compile the Cython kernels; everything else about the build is in pyproject.toml."""

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
KERNELS = "src/pennon/encoding/kernels"


def kernel_extensions() -> list[Extension]:
    """One extension module per ``.pyx`` file in the kernels folder."""
    return [
        Extension(
            f"pennon.encoding.kernels.{source.stem}",
            [f"{KERNELS}/{source.name}"],
            extra_compile_args=["-O3", "-fno-strict-aliasing"],
            extra_link_args=["-Wl,--strip-debug"] if sys.platform == "linux" else [],
        )
        for source in sorted((ROOT / KERNELS).glob("*.pyx"))
    ]


setup(
    ext_modules=cythonize(
        kernel_extensions(),
        language_level=3,
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
        quiet=True,
    )
)
