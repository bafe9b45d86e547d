"""Compile the Cython kernels; everything else about the build is in pyproject.toml.

They use Python's limited API, so one wheel serves Python 3.11 and all later ones: docs/decisions/037.
``PENNON_SANITIZE=1`` compiles them with sanitizers, for ``scripts/sanitize.sh``.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer

ROOT = Path(__file__).parent
SOURCES = ROOT / "src"
# What Cython adds to each module that takes arrays, once for all of them: docs/decisions/018.
SHARED = "pennon._cython_shared"
SHARED_SOURCE = "src/pennon/_cython_shared.c"
WORKERS = os.cpu_count() or 1
SANITIZERS = ["-fsanitize=address,undefined"]
# Free-threaded Pythons have no limited API before 3.15: they get kernels of their own version.
IS_LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
LIMITED_API = [("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")]


def compile_options(level: str) -> tuple[list[str], list[str]]:
    """Return what the compiler is told, at this level of optimization, and the linker."""
    if os.environ.get("PENNON_SANITIZE"):
        return [
            "-O1",
            "-g",
            "-fno-omit-frame-pointer",
            "-fno-strict-aliasing",
            *SANITIZERS,
        ], SANITIZERS
    if sys.platform == "win32":
        return ["/O2"], []
    # No option names a processor: one wheel serves all.  The kernels that gain from newer instructions
    # are compiled for several sets, and ask the processor when they are called.
    # Python's own flags may ask for debug sections: a fifth of the time, and most of a wheel.  Where a
    # loop begins is a fifth of some kernels' speed, and would hang on what else their module holds.
    # Debian's Python asks for the protection of stacks, others do not: with it, gcc lays arrays on the
    # stack otherwise, so every build has it, and what the tests run is what every machine runs.
    # A function that the limited API lacks must not compile: C takes it for one that returns an int.
    return [
        level,
        "-g0",
        "-Werror=implicit-function-declaration",
        "-falign-loops=32",
        "-fno-strict-aliasing",
        "-fstack-protector-strong",
    ], ["-Wl,-x" if sys.platform == "darwin" else "-Wl,--strip-all"]


def extension(name: str, source: str, level: str) -> Extension:
    """Return one compiled module."""
    to_compile, to_link = compile_options(level)
    return Extension(
        name,
        [source],
        extra_compile_args=to_compile,
        extra_link_args=to_link,
        define_macros=LIMITED_API if IS_LIMITED else [],
        py_limited_api=IS_LIMITED,
    )


def kernel_extensions() -> list[Extension]:
    """Return an extension for each ``.pyx`` file of the kernels' folders, and the shared one."""
    sources = [
        path.relative_to(ROOT) for path in sorted(SOURCES.glob("pennon/**/kernels/**/*.pyx"))
    ]
    kernels = [
        extension(".".join(path.with_suffix("").parts[1:]), path.as_posix(), "-O3")
        for path in sources
    ]
    return [extension(SHARED, SHARED_SOURCE, "-O2"), *kernels]  # which takes longest, so first


class BuildKernels(build_ext):
    """Translates to C when modules are built: most commands run setup.py for less than that."""

    def build_extensions(self) -> None:
        """Translate what has changed, and compile it."""
        from Cython.Build import cythonize  # noqa: PLC0415 - the other commands do not need it

        translated = cythonize(
            self.extensions,
            nthreads=WORKERS,
            # Cython looks at sources, not at the options below.
            force=self.force or newer(__file__, SHARED_SOURCE),
            shared_utility_qualified_name=SHARED,
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
        for kernel, made in zip(self.extensions, translated, strict=True):
            kernel.sources = made.sources
        super().build_extensions()

    def copy_extensions_to_source(self) -> None:
        """Copy modules beside their sources, and delete those of other Pythons there: they would be imported first."""
        super().copy_extensions_to_source()
        for kernel in self.extensions:
            made = SOURCES / self.get_ext_filename(kernel.name)
            for other in made.parent.glob(f"{made.name.partition('.')[0]}.*{made.suffix}"):
                if other.name != made.name:
                    other.unlink()

    def get_source_files(self) -> list[str]:
        """Return what source archives hold: nothing that Cython made."""
        return [name for name in super().get_source_files() if not name.endswith(".c")]


if __name__ == "__main__":  # Cython's workers may import this file
    setup(
        ext_modules=kernel_extensions(),
        cmdclass={"build_ext": BuildKernels},
        options={
            "build_ext": {"parallel": WORKERS},
            "bdist_wheel": {"py_limited_api": "cp311"} if IS_LIMITED else {},
        },
    )
