"""Hot loops in Cython: whole pages at a time, without the GIL, knowing nothing but arrays."""
