"""The messages of the format, compiled from ``protos/`` by ``make protos``."""
