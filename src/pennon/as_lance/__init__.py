"""Pennon under pylance's name: after `install_as_lance`, ``import lance`` imports Pennon.

- `install`: an import finder for ``lance`` and its modules, and a folder for ``PYTHONPATH``.
- `modules`: the module of Pennon for each module of pylance.
- ``python -m pennon.as_lance program.py``: runs a program that cannot be edited.
- The other modules here have the contents of pylance's modules that only such programs need.
"""

from pennon.as_lance.install import install_as_lance as install_as_lance

__all__ = ["install_as_lance"]
