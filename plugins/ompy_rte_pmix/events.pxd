# What libpmix tells by itself: processes that fail, jobs that end, the server that goes.  One process has one connection, and
# its handler no argument of its own.
from ompy_rte_pmix.interface cimport pmix_event_notification_cbfunc_fn_t, pmix_info_t, pmix_proc_t, pmix_status_t

cdef enum:
    HEARD = 14  # kinds of events

cdef pmix_status_t[HEARD] heard
cdef char[256] own_nspace
cdef int bell  # readable once there is an event; -1: none
cdef bint server_is_lost

# What libpmix calls.
cdef void happened(
    size_t reference, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info, size_t count,
    pmix_info_t *results, size_t results_count, pmix_event_notification_cbfunc_fn_t done, void *context,
) noexcept nogil

# Takes all since the last time: whom it befell (namespace, rank), the PMIx status, the exit code where it is told.
cdef list take_events()
# Ranks of this job whose failure is among those to be taken.
cdef set untold_failures()
