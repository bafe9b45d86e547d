"""Checks of what a caller commits by hand: field ids must mean the same to schema, table and data files.

Readers find a column by its field id.  A schema whose ids were given anew (a round trip through pyarrow
does that), or fragments that were written for another schema, would show the values of one column under
the name of another, for good.

`given` is the door; `schemas` compares a new schema with the table's, `files` with what data files say
they hold, `required` looks for NULLs where a field becomes required.
"""
