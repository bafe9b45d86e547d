"""Whether mapped files are in memory, as far as a kernel can tell that picks a few rows of them with the interpreter's lock held.

A page of a file that is not in memory is read from the disk when it is touched.  Other threads could ask the disk meanwhile,
so the lock is let go of for some time after a few rows have taken as long as only a disk takes.
"""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #if defined(_WIN32)
    static long pennon_reads(void) { return -1; }
    #else
    #include <sys/resource.h>
    static long pennon_reads(void) { /* pages that the process has waited for; -1: the system does not say */
        struct rusage used;
        return getrusage(RUSAGE_SELF, &used) ? -1 : used.ru_majflt;
    }
    #endif
    #define PENNON_WAIT 200000        /* nanoseconds; with the lock held, less is done in a quarter of them */
    #define PENNON_COLD 10            /* so many times as long files are taken for cold */
    #define PENNON_LONGEST 100000000  /* but no longer than this */
    static int64_t pennon_cold_until = 0;
    static long pennon_reads_known = 0;

    static int pennon_is_cold(int64_t now) { return now < pennon_cold_until; }

    static void pennon_note_time(int64_t began, int64_t ended) {
        int64_t taken = ended - began, cold;
        long reads;
        if (taken <= PENNON_WAIT) return;
        reads = pennon_reads(); /* the thread may have waited for a processor instead */
        if (reads >= 0 && reads == pennon_reads_known) return;
        cold = taken * PENNON_COLD;
        pennon_reads_known = reads;
        pennon_cold_until = ended + (cold < PENNON_LONGEST ? cold : PENNON_LONGEST);
    }
    """
    bint is_cold "pennon_is_cold" (int64_t now)  # by the clock of time.perf_counter_ns
    void note_time "pennon_note_time" (int64_t began, int64_t ended)
