"""What file versions share: the file as it is opened and written, its end, its messages.

Nothing here knows a version's code; `pennon.file.open` hands it in.
"""
