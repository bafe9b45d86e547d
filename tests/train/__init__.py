"""Tests of pennon.torch; they are skipped where PyTorch is not installed (`make train` installs it)."""
