"""Compiled loops that several rooms use: copies, file maps, protobuf."""
