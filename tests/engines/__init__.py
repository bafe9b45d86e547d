"""Libraries above pylance, which run on Pennon under its name."""
