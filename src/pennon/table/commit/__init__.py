"""Commit a transaction as a version: the loop, the judgement of conflicts, the put."""
