"""Tags and branches: names for versions."""
