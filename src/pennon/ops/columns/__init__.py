"""Changing the columns of a table: plan, tasks, one commit."""
