"""Pennon: the Lance columnar format, files and tables, in Python.

The names here are those of pylance: a program that uses them runs after ``import pennon as lance``.
"""

from pennon.dataset import LanceDataset as LanceDataset
from pennon.dataset import LanceOperation as LanceOperation
from pennon.dataset import LanceScanner as LanceScanner
from pennon.dataset import Transaction as Transaction
from pennon.dataset import dataset as dataset
from pennon.dataset import write_dataset as write_dataset
from pennon.fragment import FragmentMetadata as FragmentMetadata
from pennon.fragment import LanceFragment as LanceFragment
