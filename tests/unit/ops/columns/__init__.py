"""Tests of pennon.ops.evolve."""
