"""The data source: options, partitions, readers, writers, and the tasks of executors."""
