"""Files to arrays: fragments, tasks, batches, and columns of chosen rows."""
