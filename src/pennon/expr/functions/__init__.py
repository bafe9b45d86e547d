"""The functions of SQL, by what they work on."""
