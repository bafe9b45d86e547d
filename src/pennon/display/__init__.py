"""Values as text for people: cells of tables, sizes.  The command line prints them."""
