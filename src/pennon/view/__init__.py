"""A page to look at a table with: a local server that only reads, and a file that needs no server.

`pennon view TABLE` starts it.  `server` answers the requests that `guard` lets through, with what `routes` finds;
`export` writes the answers of a few of them into one HTML file.  What the page shows is made here as text, with the
functions of `pennon.display` that the command line uses, too; the scripts in ``static`` only place it.
"""
