"""Changing tables: plan, tasks, one commit."""
