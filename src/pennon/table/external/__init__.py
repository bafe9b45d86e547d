"""Commits through an external manifest store, for object stores that have no put-if-absent."""

from pennon.table.external.manifests import Entry as Entry
from pennon.table.external.manifests import ManifestStore as ManifestStore
from pennon.table.external.store import ExternalStore as ExternalStore
