"""pylance's conventions: its arguments, its base classes, and its names that are not here yet."""
