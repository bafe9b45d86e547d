"""``import lance`` as Pennon: in this process by an import finder, in its subprocesses by ``PYTHONPATH``.

No file of this package makes itself known to other programs: there is no ``.pth`` file and no
``sitecustomize``.  A program asks with `install_as_lance`, or is started by ``python -m pennon.as_lance``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pennon
from pennon.as_lance.modules import MODULES, PYLANCE_RELEASE
from pennon.errors import UnsupportedError

PATH: Final = str(Path(__file__).with_name("path"))
"""A folder for ``PYTHONPATH``: it has a module ``lance``, and metadata of a distribution ``pylance``."""


def install_as_lance(*, subprocesses: bool = True) -> None:
    """Let ``import lance``, and imports of pylance's modules, import Pennon in this process.

    Call it before the first ``import lance``.  ``lance.__version__`` is then the release of pylance
    whose names Pennon has, and ``importlib.metadata.version("pylance")`` returns the same.

    ``subprocesses``: also in Python programs that this process starts, such as workers of
    ``multiprocessing`` (``spawn``, ``forkserver``) and of Ray.  For them a folder is put first on
    ``os.environ["PYTHONPATH"]``; forked workers need nothing.

    A second call changes nothing.  Raises UnsupportedError if pylance is loaded already: two
    implementations under one name would exchange objects that the other does not know.

    >>> import subprocess, sys
    >>> program = "import pennon; pennon.install_as_lance(); import lance; print(lance.dataset is pennon.dataset)"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip()
    'True'
    """
    loaded = sys.modules.get("lance")
    if loaded is not None and not _is_ours(loaded):
        place = getattr(loaded, "__file__", None) or "an unknown place"
        message = (
            f"install_as_lance() must run before `import lance`: another module `lance` is loaded, from {place}; "
            f"call it first in the program, or start the program with `python -m pennon.as_lance`"
        )
        raise UnsupportedError(message)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    if PATH not in sys.path:
        sys.path.insert(1, PATH)  # behind the program's folder, as PYTHONPATH is
    if subprocesses:
        put_on_python_path(os.environ)


def put_on_python_path(environment: MutableMapping[str, str]) -> None:
    """Put the folder that has a module ``lance`` first on an environment's ``PYTHONPATH``."""
    others = environment.get("PYTHONPATH", "").split(os.pathsep)
    places = [PATH, *(place for place in others if place and place != PATH)]
    environment["PYTHONPATH"] = os.pathsep.join(places)


def replace_module_of_path() -> None:
    """Replace the module ``lance`` that Python is just importing from the folder on ``PYTHONPATH``."""
    sys.modules.pop("lance", None)
    install_as_lance()
    import_module("lance")


class _Finder(MetaPathFinder):
    """Finds ``lance`` and the modules in `MODULES`."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load ``lance`` or a module of it; None for any other name."""
        del path, target
        if name == "lance":
            return ModuleSpec(name, _PackageLoader(), origin=pennon.__file__, is_package=True)
        if name in MODULES:
            return ModuleSpec(name, _TwinLoader(), origin=MODULES[name])
        if name.startswith("lance."):
            message = f"No module named {name!r}: Pennon has none like it (docs/compat.md)"
            raise ModuleNotFoundError(message, name=name)
        return None


class _PackageLoader(Loader):
    """Makes the module ``lance``, which hands on the names of `pennon`."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return ModuleType(spec.name, pennon.__doc__)

    def exec_module(self, module: ModuleType) -> None:
        """Fill it: a few names now, the others when they are first used."""
        names = {
            "__all__": [*pennon.__all__, "__version__"],
            "__dir__": lambda: sorted({*vars(module), *pennon.__all__, *_children("lance")}),
            "__file__": pennon.__file__,
            "__getattr__": _get,
            "__version__": PYLANCE_RELEASE,
            "dataset": pennon.dataset,
            "write_dataset": pennon.write_dataset,
        }
        vars(module).update(names)
        # An import of `lance.dataset` would put the module over the function of that name.
        sys.modules["lance.dataset"] = import_module(MODULES["lance.dataset"])


class _TwinLoader(Loader):
    """Loads a module of pylance's: Pennon's own module stands in `sys.modules` under both names."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module by Pennon's, and load the modules below it if that is no package."""
        name = module.__name__
        twin = import_module(MODULES[name])
        sys.modules[name] = twin
        if not hasattr(twin, "__path__"):
            for child in _children(name):
                full = f"{name}.{child}"
                sys.modules[full] = import_module(MODULES[full])


def _children(parent: str) -> list[str]:
    """Return the names of the modules directly below one."""
    below = (name.removeprefix(f"{parent}.") for name in MODULES if name.startswith(f"{parent}."))
    return [name for name in below if "." not in name]


def _get(name: str) -> Any:
    """Return an attribute of the module ``lance``: a module, or a name of `pennon`."""
    if f"lance.{name}" in MODULES:
        return import_module(f"lance.{name}")
    return getattr(pennon, name)


def _is_ours(module: ModuleType) -> bool:
    spec = module.__spec__
    return spec is not None and isinstance(spec.loader, _PackageLoader)
