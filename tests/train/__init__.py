"""Tests of pennon.torch, which run in an environment with PyTorch: ``make train``, tests/slow entry test_training.py."""
