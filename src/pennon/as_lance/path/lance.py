"""The module that ``import lance`` finds on ``PYTHONPATH`` (`pennon.as_lance`): Pennon takes its place."""

from pennon.as_lance.install import replace_module_of_path

replace_module_of_path()
