"""A plugin of pytest that lets ``import lance`` mean `pennon`."""

import pennon

pennon.install_as_lance()
