"""Bugs that others had, put back one at a time; the checker must find each.

U, T and the numbers in brackets are those of the commit-and-faults reference.  Of its 44 bugs of upstream and of
its neighbours these have no meaning here, or are held by other tests:

================ ==========================================================================================
bug              why there is no plant
================ ==========================================================================================
U3               uuids are drawn anew here; a reused one is `tests/faults/test_commit_safety.py`
U5               no e_tag is stored, so none can be the wrong object's
U7 U8 U9 U34     files that are never collected: waste, not loss (`tests/unit/ops/test_clean*`)
U10 U39          foreign folders, and one table under two URIs: the simulated table is alone under one URI
U17 (T31)        caches go by the identity of a file, and one of another content has another name
U16 U18-U22 U32  need indices, which Pennon does not build or query
U24 U26-U31 U43  bytes of files, not of commits: `test_mutants*`, `test_bad_input`
U25 U44          creation and re-creation race before the first version, and versions begin anew, which the
                 simulated history does not model: `test_commit.py`, `test_commit_safety.py`
U33              a table that was copied elsewhere: the simulated one stays where it is
U35 U40          Spark's task commits and micro-batches: `tests/spark`
U36 (T27)        entries of the manifest store vanish: the simulated one loses nothing (`test_external_commit.py`)
U41 (T5)         power cuts of a local disk: `tests/faults/test_local_kill.py`
================ ==========================================================================================
"""

from tests.faults.simulation import plants_commit, plants_store
from tests.faults.simulation.planting import PLANTS as PLANTS

__all__ = ["PLANTS", "plants_commit", "plants_store"]
