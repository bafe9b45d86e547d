"""Catalogs: tables by name, in a folder, behind a REST service, or in a dict."""

from __future__ import annotations

from pennon.catalog.base import Catalog, TableEntry, TableName

__all__ = ["Catalog", "TableEntry", "TableName"]
