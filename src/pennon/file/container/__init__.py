"""The parts that file versions share: an opened file, a written file, its end, its messages.

Nothing here knows a version's code; `pennon.file.open` hands it in.
"""
