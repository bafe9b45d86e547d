"""Encoders of file version 2.1: from Arrow arrays to pages."""
