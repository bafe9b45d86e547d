"""Search of vector indices: partitions, schedules, heaps, and old layouts."""
