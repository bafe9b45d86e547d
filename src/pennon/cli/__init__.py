"""The command line ``pennon``: `pennon.cli.main` is where it starts."""
