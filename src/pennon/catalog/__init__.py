"""Catalogs: tables by name, in a folder, behind a REST service, or in a dict."""

from __future__ import annotations

from pennon.catalog.base import Catalog, TableEntry, TableName
from pennon.catalog.directory import DirectoryCatalog
from pennon.catalog.named import NamedTables
from pennon.catalog.rest import RestCatalog
from pennon.catalog.table_names import join_name, split_name

__all__ = [
    "Catalog",
    "DirectoryCatalog",
    "NamedTables",
    "RestCatalog",
    "TableEntry",
    "TableName",
    "join_name",
    "split_name",
]
