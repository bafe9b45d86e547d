"""Run a planned query: filter, take, sort, count, aggregate, explain."""
