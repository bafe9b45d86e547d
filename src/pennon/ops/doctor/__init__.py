"""The doctor of tables: checks that give findings, and the repair of what they find."""
