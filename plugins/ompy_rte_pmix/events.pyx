# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""What libpmix tells by itself.  See `events.pxd`."""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset, strcmp, strncpy

from ompy_rte_pmix.interface cimport *
from ompy_rte_pmix.operation cimport number_of, ring

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int descriptor, void *room, size_t size)

cdef extern from *:
    """
    /* A list that anybody adds to and one takes away whole. */
    static void ompy_pmix_add(void **list, void **next, void *it) {
        *next = __atomic_load_n(list, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(list, next, it, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
    }
    static void *ompy_pmix_take(void **list) { return __atomic_exchange_n(list, NULL, __ATOMIC_ACQUIRE); }
    """
    void add "ompy_pmix_add"(void **list, void **next, void *it) noexcept nogil
    void *take "ompy_pmix_take"(void **list) noexcept nogil

cdef enum:
    NO_CODE = -1

cdef struct Event:
    Event *next
    pmix_status_t status
    int64_t code
    uint32_t rank
    char nspace[256]


cdef void *happenings = NULL
bell = -1
server_is_lost = False
heard = [
    ERR_PROC_ABORTED, ERR_PROC_REQUESTED_ABORT, ERR_PROC_ABORTING, ERR_LOST_CONNECTION, ERR_LOST_CONNECTION_TO_SERVER,
    ERR_PROC_TERM_WO_SYNC, ERR_PROC_KILLED_BY_CMD, ERR_PROC_FAILED_TO_START, ERR_PROC_ABORTED_BY_SIG,
    ERR_PROC_SENSOR_BOUND_EXCEEDED, ERR_EXIT_NONZERO_TERM, EVENT_JOB_END, -231, -232,
]


# -- on libpmix's thread

cdef bint is_of_job(const pmix_proc_t *who) noexcept nogil:
    return who != NULL and strcmp(who.nspace, own_nspace) == 0


cdef void happened(
    size_t reference, pmix_status_t status, const pmix_proc_t *source, pmix_info_t *info, size_t count,
    pmix_info_t *results, size_t results_count, pmix_event_notification_cbfunc_fn_t done, void *context,
) noexcept nogil:
    global server_is_lost
    cdef Event *event = <Event *> malloc(sizeof(Event))
    cdef const pmix_proc_t *who = source
    cdef size_t place
    if event != NULL:
        event.status, event.code = status, NO_CODE
        for place in range(count):
            if strcmp(info[place].key, "pmix.evproc") == 0 and info[place].value.type == TYPE_PROC:
                who = info[place].value.data.proc
            elif strcmp(info[place].key, "pmix.exit.code") == 0 or strcmp(info[place].key, "pmix.job.term.status") == 0:
                event.code = number_of(&info[place].value, NO_CODE)
        memset(event.nspace, 0, sizeof(event.nspace))
        event.rank = RANK_WILDCARD
        if (status == ERR_LOST_CONNECTION or status == ERR_LOST_CONNECTION_TO_SERVER) and not is_of_job(who):
            server_is_lost = True
        if who != NULL:
            strncpy(event.nspace, who.nspace, MAX_NSLEN)
            event.rank = who.rank
        add(&happenings, <void **> &event.next, event)
        ring(bell)
    if done != NULL:
        done(EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, context)


# -- on the rank's threads

cdef list take_events():
    cdef uint64_t rings
    cdef Event *event
    cdef Event *next_event
    cdef list told = []
    read(bell, &rings, sizeof(rings))
    event = <Event *> take(&happenings)
    while event != NULL:
        code = None if event.code == NO_CODE else event.code
        told.append((event.nspace.decode("utf-8", "replace"), <int64_t> event.rank, event.status, code))
        next_event = event.next
        free(event)
        event = next_event
    told.reverse()
    return told


cdef set untold_failures():
    cdef Event *event = <Event *> happenings
    cdef set ranks = set()
    while event != NULL:
        if event.status != EVENT_JOB_END and strcmp(event.nspace, own_nspace) == 0 and event.rank != RANK_WILDCARD:
            ranks.add(event.rank)
        event = event.next
    return ranks
