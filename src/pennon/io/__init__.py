"""Places that keep files: local folders, memory, object stores."""

from pennon.io.local import LocalStore as LocalStore
from pennon.io.memory import MemoryStore as MemoryStore
from pennon.io.registry import open_store as open_store
