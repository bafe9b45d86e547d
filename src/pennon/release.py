"""The release of this package, which wheels, manifests and `pennon.__version__` name."""

from typing import Final

RELEASE: Final = "0.1.0.dev0"
"""A version as PEP 440 has it; docs/releases.md says what a step of each number promises."""
