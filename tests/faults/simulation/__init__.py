"""A deterministic simulator of many clients of one table.

One process, one thread at a time, a virtual clock, a virtual store: a seed says everything.

=============== ====================================================================================
`.seams`        what of Python is virtual for an actor: time, randomness, threads
`.scheduler`    whose turn it is, when somebody dies, pauses, or sleeps
`.store`        the disk, its faults, and the history of what was committed
`.model`        what each operation does to rows
`.actors`       writers, readers, cleaners, taggers; the script of a seed
`.checker`      what must hold of a history
`.plants`       known bugs, put back one at a time, that the checker must find
`.simulation`   one run of one seed
=============== ====================================================================================
"""
