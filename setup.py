"""Compile the Cython kernels; everything else about the build is in pyproject.toml.

``PENNON_SANITIZE=1`` compiles them with sanitizers, for ``scripts/sanitize.sh``.
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
KERNELS = "src/pennon/encoding/kernels"
SANITIZERS = ["-fsanitize=address,undefined"]


def compile_options() -> tuple[list[str], list[str]]:
    """Return what the compiler is told, and the linker."""
    if os.environ.get("PENNON_SANITIZE"):
        return [
            "-O1",
            "-g",
            "-fno-omit-frame-pointer",
            "-fno-strict-aliasing",
            *SANITIZERS,
        ], SANITIZERS
    # Debug sections are most of what a wheel would weigh.
    strip = ["-Wl,--strip-debug"] if sys.platform == "linux" else []
    return ["-O3", "-fno-strict-aliasing"], strip


def kernel_extensions() -> list[Extension]:
    """One extension module per ``.pyx`` file in the kernels folder."""
    to_compile, to_link = compile_options()
    return [
        Extension(
            f"pennon.encoding.kernels.{source.stem}",
            [f"{KERNELS}/{source.name}"],
            extra_compile_args=to_compile,
            extra_link_args=to_link,
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
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
