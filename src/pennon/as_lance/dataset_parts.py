"""The package ``lance._dataset``: it has no names of its own."""
