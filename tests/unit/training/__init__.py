"""Tests of pennon.training."""
