"""Expressions over the columns of a table: conditions and computed columns.

`pennon.expr.parse.parse_filter` and ``parse_column`` turn SQL text into a typed tree
(`pennon.expr.tree`), and `pennon.expr.evaluate.evaluate` applies that to batches.  The text is never
run as anything but such a tree.
"""
