"""Clustering: the same rows in another order, so that the statistics of a file say more."""
