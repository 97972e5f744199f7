# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""libpmix as a rank speaks with it; found when it is needed, declared in `interface.pxd`.

libpmix calls back on a thread of its own, to which no signal goes and which never asks for the GIL: an answer is left in the
`Operation` that it belongs to, an event in a list, and a descriptor becomes readable.

    the rank's threads                           libpmix's thread
    PMIx_Get_nb(.., operation)
    poll(operation.bell), the engine goes on     answered(status, value, operation): copy, ring
    poll(client.descriptor)                      happened(status, source, ..): event into the list, ring
    events(): the whole list
"""
import os
import time

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strcmp, strlen, strncpy

from ompy_rte_pmix.interface cimport *

from ompy.core.errors import ERR_ARG, ERR_INTERN, ERR_SPAWN, MPIError

cdef extern from "<dlfcn.h>" nogil:
    int RTLD_NOW, RTLD_LOCAL
    void *dlopen(const char *path, int flags)
    void *dlsym(void *library, const char *name)
    int dlclose(void *library)
    char *dlerror()

cdef extern from "<sys/eventfd.h>" nogil:
    int EFD_CLOEXEC, EFD_NONBLOCK
    int eventfd(unsigned int value, int flags)

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    short POLLIN
    int poll(pollfd *descriptors, unsigned long count, int milliseconds)

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int descriptor, void *room, size_t size)
    ssize_t write(int descriptor, const void *data, size_t size)
    int close(int descriptor)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK
    int sigfillset(sigset_t *signals)
    int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before)

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

LEAST, MOST = (3, 1), (6, 99)  # versions whose interface `interface.pxd` is
LONGEST_KEY = MAX_KEYLEN
JOB_END = EVENT_JOB_END
cdef enum:
    HEARD = 14  # kinds of events
    SLICE = 100  # milliseconds: a signal that another thread has got is noticed after so long
    NO_CODE = -1

cdef struct Event:
    Event *next
    pmix_status_t status
    int64_t code
    uint32_t rank
    char nspace[256]

cdef struct Answer:
    int bell  # rung last: libpmix's thread is then done with all of this
    pmix_status_t status
    pmix_data_type_t type
    int64_t number
    char *content
    size_t length

# One process has one connection, and its handler no argument of its own.
cdef void *happenings = NULL
cdef int bell = -1
cdef char[256] own_nspace
cdef bint server_is_lost = False

cdef pmix_status_t[HEARD] heard = [
    ERR_PROC_ABORTED, ERR_PROC_REQUESTED_ABORT, ERR_PROC_ABORTING, ERR_LOST_CONNECTION, ERR_LOST_CONNECTION_TO_SERVER,
    ERR_PROC_TERM_WO_SYNC, ERR_PROC_KILLED_BY_CMD, ERR_PROC_FAILED_TO_START, ERR_PROC_ABORTED_BY_SIG,
    ERR_PROC_SENSOR_BOUND_EXCEEDED, ERR_EXIT_NONZERO_TERM, EVENT_JOB_END, -231, -232,
]


# -- on libpmix's thread

cdef void ring(int descriptor) noexcept nogil:
    cdef uint64_t one = 1
    write(descriptor, &one, sizeof(one))


cdef int64_t number_of(const pmix_value_t *value, int64_t otherwise) noexcept nogil:
    """A value as a number, whatever its width."""
    if value.type == TYPE_BOOL:
        return value.data.flag
    if value.type == TYPE_SIZE or value.type == TYPE_UINT64 or value.type == TYPE_INT64:
        return value.data.int64
    if value.type == TYPE_INT or value.type == TYPE_INT32 or value.type == TYPE_STATUS:
        return value.data.int32
    if value.type == TYPE_UINT or value.type == TYPE_UINT32 or value.type == TYPE_PROC_RANK:
        return value.data.uint32
    if value.type == TYPE_INT16:
        return value.data.int16
    if value.type == TYPE_UINT16:
        return value.data.uint16
    if value.type == TYPE_INT8:
        return value.data.int8
    if value.type == TYPE_UINT8:
        return value.data.uint8
    return otherwise


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


cdef void finished(pmix_status_t status, void *context) noexcept nogil:
    cdef Answer *answer = <Answer *> context
    answer.status = status
    ring(answer.bell)


cdef void registered(pmix_status_t status, size_t reference, void *context) noexcept nogil:
    finished(status, context)


cdef void answered(pmix_status_t status, pmix_value_t *value, void *context) noexcept nogil:
    if status == SUCCESS and value != NULL:
        keep(<Answer *> context, value)
    finished(status, context)


cdef void found(pmix_status_t status, pmix_pdata_t *data, size_t count, void *context) noexcept nogil:
    if status == SUCCESS and count:
        keep(<Answer *> context, &data[0].value)
    finished(status, context)


cdef void started(pmix_status_t status, char *nspace, void *context) noexcept nogil:
    if status == SUCCESS and nspace != NULL:
        copy(<Answer *> context, nspace, strlen(nspace))
    finished(status, context)


cdef void keep(Answer *answer, const pmix_value_t *value) noexcept nogil:
    answer.type = value.type
    if value.type == TYPE_BYTE_OBJECT:
        copy(answer, value.data.bo.bytes, value.data.bo.size)
    elif value.type == TYPE_STRING and value.data.string != NULL:
        copy(answer, value.data.string, strlen(value.data.string))
    else:
        answer.number = number_of(value, -1)


cdef void copy(Answer *answer, const char *data, size_t length) noexcept nogil:
    answer.content = <char *> malloc(length + 1)
    if answer.content != NULL:
        memcpy(answer.content, data, length)
        answer.length = length


# -- on the rank's threads

cdef class Operation:
    """A call that libpmix answers later, and what it reads until then.

    Attributes:
        bell: readable once the answer is here.
    """

    cdef Answer answer
    cdef pmix_proc_t proc
    cdef list kept

    def __cinit__(self) -> None:
        self.answer.bell = eventfd(0, EFD_CLOEXEC)
        if self.answer.bell < 0:
            raise MPIError(ERR_INTERN, "no descriptor is left for an answer of the PMIx server's")
        self.kept = []

    def __dealloc__(self) -> None:
        free(self.answer.content)
        if self.answer.bell >= 0:
            close(self.answer.bell)

    @property
    def bell(self) -> int:
        return self.answer.bell

    cdef void *room(self, size_t size) except NULL:
        """Zeroes that live as long as this does."""
        made = bytearray(size)
        self.kept.append(made)
        return <char *> made

    cdef char *string(self, bytes text) except NULL:
        if b"\0" in text:
            raise MPIError(ERR_ARG, f"{text!r}: PMIx takes no zero byte in it")
        self.kept.append(text)
        return <char *> text

    cdef char **strings(self, texts) except NULL:
        """An array of them, NULL at its end."""
        cdef char **made = <char **> self.room((len(texts) + 1) * sizeof(char *))
        for place, text in enumerate(texts):
            made[<size_t> place] = self.string(text)
        return made

    cdef pmix_info_t *infos(self, size_t count) except NULL:
        return <pmix_info_t *> self.room(max(count, 1) * sizeof(pmix_info_t))

    cdef int label(self, pmix_info_t *info, bytes key, pmix_data_type_t kind) except -1:
        if len(key) > MAX_KEYLEN or b"\0" in key:
            raise MPIError(ERR_ARG, f"{key!r}: PMIx takes names of at most {MAX_KEYLEN} bytes")
        strncpy(info.key, <char *> key, MAX_KEYLEN)
        info.value.type = kind
        return 0

    cdef bint is_answered(self) noexcept:
        cdef pollfd asked = pollfd(self.answer.bell, POLLIN, 0)
        return poll(&asked, 1, 0) > 0

    cdef bint wait(self, double seconds) except -1:
        """Until the answer is here; False when it is not in that time.  Signals' handlers run meanwhile, and may raise."""
        cdef pollfd asked = pollfd(self.answer.bell, POLLIN, 0)
        cdef double end = time.monotonic() + seconds
        while True:
            with nogil:
                poll(&asked, 1, SLICE)
            if asked.revents:
                return True
            PyErr_CheckSignals()
            if time.monotonic() > end:
                return False

    cdef result(self):
        """A number, or bytes."""
        if self.answer.content != NULL:
            return self.answer.content[: self.answer.length]
        return self.answer.number


cdef class Client:
    """A process's connection to the PMIx server that has started it.

    Parameters:
        path: of libpmix, or its name for the dynamic linker.

    Attributes:
        version: of the library.
        nspace, rank: of this process, once it has begun.
        descriptor: readable when `events` has something; -1 when there is no connection.

    Errors: OSError where there is no such library; MPIError for one whose interface is not known, and for calls that fail.
    """

    cdef void *library
    cdef readonly str path, version, nspace
    cdef readonly int rank, process, descriptor
    cdef set unanswered
    cdef Error_string error_string
    cdef Init init
    cdef Finalize finalize_
    cdef Abort abort_
    cdef Put put_
    cdef Commit commit_
    cdef Fence_nb fence_nb
    cdef Get_nb get_nb
    cdef Publish_nb publish_nb
    cdef Lookup_nb lookup_nb
    cdef Unpublish_nb unpublish_nb
    cdef Spawn_nb spawn_nb
    cdef Register_event_handler register_event_handler

    def __init__(self, path: str) -> None:
        self.descriptor = -1
        self.unanswered = set()
        self.path = path
        self.library = dlopen(os.fsencode(path), RTLD_NOW | RTLD_LOCAL)
        if self.library == NULL:
            raise OSError(os.fsdecode(dlerror()))
        words = (<Get_version> self.function(b"PMIx_Get_version"))().decode("utf-8", "replace").replace(",", " ").split()
        self.version = next((word for word in words if word[0].isdecimal()), "unknown")
        numbers = [int(part) if part.isdecimal() else 0 for part in self.version.split(".")[:2]]
        if not LEAST <= tuple(numbers) <= MOST:
            dlclose(self.library)
            raise MPIError(ERR_INTERN, f"{path} is PMIx {self.version}: versions {LEAST[0]}.{LEAST[1]} to {MOST[0]} are known")
        self.error_string = <Error_string> self.function(b"PMIx_Error_string")
        self.init = <Init> self.function(b"PMIx_Init")
        self.finalize_ = <Finalize> self.function(b"PMIx_Finalize")
        self.abort_ = <Abort> self.function(b"PMIx_Abort")
        self.put_ = <Put> self.function(b"PMIx_Put")
        self.commit_ = <Commit> self.function(b"PMIx_Commit")
        self.fence_nb = <Fence_nb> self.function(b"PMIx_Fence_nb")
        self.get_nb = <Get_nb> self.function(b"PMIx_Get_nb")
        self.publish_nb = <Publish_nb> self.function(b"PMIx_Publish_nb")
        self.lookup_nb = <Lookup_nb> self.function(b"PMIx_Lookup_nb")
        self.unpublish_nb = <Unpublish_nb> self.function(b"PMIx_Unpublish_nb")
        self.spawn_nb = <Spawn_nb> self.function(b"PMIx_Spawn_nb")
        self.register_event_handler = <Register_event_handler> self.function(b"PMIx_Register_event_handler")

    cdef void *function(self, bytes name) except NULL:
        cdef void *found = dlsym(self.library, name)
        if found == NULL:
            raise MPIError(ERR_INTERN, f"{self.path} has no {name.decode()}")
        return found

    # -- one call at a time

    cdef int check(self, pmix_status_t status, str what, int error=ERR_INTERN) except -1:
        if status != SUCCESS and status != OPERATION_SUCCEEDED:
            words = self.error_string(status).decode("utf-8", "replace")
            raise MPIError(error, f"the PMIx server {what}: {words} ({status})")
        return 0

    cdef Operation begin_operation(self):
        """The next one.  Those that nobody waits for any more and that are answered are forgotten."""
        if self.descriptor < 0 or os.getpid() != self.process:
            raise MPIError(ERR_INTERN, "no connection to a PMIx server: this process has left it, or is a child of the rank")
        cdef Operation it
        for it in list(self.unanswered):
            if it.is_answered():
                self.unanswered.discard(it)
        return Operation()

    cdef int end_operation(
        self, Operation it, pmix_status_t status, str what, double seconds, serve=None, int error=ERR_INTERN
    ) except -1:
        """Wait for the answer to a call that has returned `status`."""
        self.check(status, what, error)
        if status == OPERATION_SUCCEEDED:
            return 0
        self.unanswered.add(it)
        if serve is not None:
            serve(it.answer.bell)
        if not it.wait(seconds):
            raise MPIError(error, f"the PMIx server {what}: no answer in {seconds:g} s")
        self.unanswered.discard(it)
        self.check(it.answer.status, what, error)
        return 0

    # -- beginning and end

    def begin(self) -> None:
        """Connect, and hear of failures."""
        global bell
        cdef pmix_proc_t proc
        cdef pmix_status_t status
        cdef sigset_t every, before
        memset(&proc, 0, sizeof(proc))
        sigfillset(&every)
        with nogil:
            # The library's threads are to get no signal: it would not interrupt what the rank's main thread waits in.
            pthread_sigmask(SIG_SETMASK, &every, &before)
            status = self.init(&proc, NULL, 0)
            pthread_sigmask(SIG_SETMASK, &before, NULL)
        self.check(status, "does not let this process in")
        self.nspace, self.rank, self.process = proc.nspace.decode("utf-8", "replace"), proc.rank, os.getpid()
        strncpy(own_nspace, proc.nspace, MAX_NSLEN)
        bell = self.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        it = self.begin_operation()
        with nogil:
            status = self.register_event_handler(heard, HEARD, NULL, 0, happened, registered, &it.answer)
        self.end_operation(it, status, "does not tell of events", 60)

    def finalize(self) -> None:
        """Leave; the process may then end as it likes."""
        if self.descriptor < 0:
            return
        with nogil:
            self.finalize_(NULL, 0)
        self.close()

    def close(self) -> None:
        """Without a word to the server."""
        global bell
        close(self.descriptor)
        bell = self.descriptor = -1

    def abort(self, code: int, message: str) -> None:
        """End the job."""
        cdef bytes words = message.encode("utf-8", "replace").replace(b"\0", b" ")
        cdef const char *text = words
        cdef int number = code
        with nogil:
            self.abort_(number, text, NULL, 0)

    # -- what the job publishes

    def put(self, key: str, value: bytes) -> None:
        """Of this rank, for all; there after `commit` and a fence."""
        cdef pmix_value_t given
        cdef bytes name = key.encode()
        cdef const char *text = name
        cdef pmix_status_t status
        memset(&given, 0, sizeof(given))
        given.type = TYPE_BYTE_OBJECT
        given.data.bo.bytes, given.data.bo.size = <char *> value, len(value)
        if len(name) > MAX_KEYLEN:
            raise MPIError(ERR_ARG, f"{key!r}: PMIx takes names of at most {MAX_KEYLEN} bytes")
        with nogil:
            status = self.put_(SCOPE_GLOBAL, text, &given)
        self.check(status, f"does not take what is published under {key}")

    def commit(self) -> None:
        cdef pmix_status_t status
        with nogil:
            status = self.commit_()
        self.check(status, "does not take what is published")

    def begin_fence(self, collect: bool, ranks=()) -> Operation:
        """Enter a fence.

        Parameters:
            collect: have the servers swap all that was committed; else no data moves.
            ranks: those that meet in it, who all name the same ones; none: the whole job.
        """
        it = self.begin_operation()
        cdef pmix_info_t *info = it.infos(1)
        cdef size_t count = len(ranks)
        cdef size_t place
        cdef pmix_proc_t *procs = <pmix_proc_t *> it.room(count * sizeof(pmix_proc_t)) if count else NULL
        cdef pmix_status_t status
        for place in range(count):
            memcpy(procs[place].nspace, own_nspace, sizeof(own_nspace))
            procs[place].rank = ranks[place]
        it.label(info, b"pmix.collect", TYPE_BOOL)
        info.value.data.flag = collect
        with nogil:
            status = self.fence_nb(procs, count, info, 1, finished, &it.answer)
        self.check(status, "does not take part in a fence")
        if status == OPERATION_SUCCEEDED:
            finished(SUCCESS, &it.answer)
        self.unanswered.add(it)
        return it

    def end_fence(self, Operation it not None, double seconds, serve=None) -> bool:
        """Wait until all are in it, by `serve(descriptor, seconds)` if it is given; False where they are not yet."""
        cdef double end = time.monotonic() + seconds
        if serve is not None:
            serve(it.answer.bell, seconds)
        if not it.wait(end - time.monotonic()):
            return False
        self.unanswered.discard(it)
        if it.answer.status not in (ERR_LOST_CONNECTION, ERR_PARTIAL_SUCCESS) or server_is_lost:
            self.check(it.answer.status, "has given up a fence")
        return True  # also where a rank has failed on its way: all others are here

    def unheard(self) -> set[int]:
        """Ranks of this job whose failure `events` has yet to tell."""
        cdef Event *event = <Event *> happenings
        ranks = set()
        while event != NULL:
            if event.status != EVENT_JOB_END and strcmp(event.nspace, own_nspace) == 0 and event.rank != RANK_WILDCARD:
                ranks.add(event.rank)
            event = event.next
        return ranks

    def get(self, rank: int, key: str, seconds: float, at_hand: bool = False) -> bytes | int | None:
        """What a rank has published, or the launcher says of it; of the whole job where `rank` is negative.

        None where the server has found nothing: for a moment that is so of what another server has just taken, too.

        Parameters:
            seconds: the longest that it may take.
            at_hand: only what need not be fetched.
        """
        it = self.begin_operation()
        cdef bytes name = key.encode()
        cdef const char *text = it.string(name)
        cdef pmix_info_t *info = it.infos(1)
        cdef pmix_status_t status
        strncpy(it.proc.nspace, <char *> it.string(self.nspace.encode()), MAX_NSLEN)
        it.proc.rank = rank if rank >= 0 else RANK_WILDCARD
        if at_hand:
            it.label(info, b"pmix.optional", TYPE_BOOL)
            info.value.data.flag = 1
        else:
            it.label(info, b"pmix.timeout", TYPE_INT)
            info.value.data.integer = max(1, int(seconds))
        with nogil:
            status = self.get_nb(&it.proc, text, info, 1, answered, &it.answer)
        if status == ERR_NOT_FOUND:
            return None
        try:
            self.end_operation(it, status, f"does not say what is published under {key}", seconds + 1)
        except MPIError:
            if it.answer.status == ERR_NOT_FOUND:
                return None
            raise
        return it.result()

    # -- names

    def publish(self, service: str, text: str, seconds: float) -> None:
        it = self.begin_operation()
        cdef pmix_info_t *info = it.infos(1)
        cdef pmix_status_t status
        it.label(info, service.encode(), TYPE_STRING)
        info.value.data.string = it.string(text.encode())
        with nogil:
            status = self.publish_nb(info, 1, finished, &it.answer)
        self.end_operation(it, status, f"does not take the name {service}", seconds)

    def lookup(self, service: str, seconds: float) -> str:
        """Empty when nobody has published it."""
        it = self.begin_operation()
        cdef char **keys = it.strings([service.encode()])
        cdef pmix_status_t status
        with nogil:
            status = self.lookup_nb(keys, NULL, 0, found, &it.answer)
        if status == ERR_NOT_FOUND:
            return ""
        try:
            self.end_operation(it, status, f"does not say what is published as {service}", seconds)
        except MPIError:
            if it.answer.status == ERR_NOT_FOUND:
                return ""
            raise
        return it.result().decode("utf-8", "replace") if it.answer.type == TYPE_STRING else ""

    def unpublish(self, service: str, seconds: float) -> None:
        it = self.begin_operation()
        cdef char **keys = it.strings([service.encode()])
        cdef pmix_status_t status
        with nogil:
            status = self.unpublish_nb(keys, NULL, 0, finished, &it.answer)
        self.end_operation(it, status, f"does not take back the name {service}", seconds)

    # -- processes

    def spawn(self, orders, environment, placement: str, seconds: float, serve=None) -> str | None:
        """Start processes as a job of their own; its namespace, or None where the server starts none.

        Parameters:
            orders: `ompy.mca.rte.Order`.
            environment: words NAME=VALUE that the new processes find in theirs.
            placement: for the launcher's mapper; empty: as it would by itself.
        """
        it = self.begin_operation()
        cdef size_t count = len(orders)
        cdef size_t place
        cdef pmix_app_t *apps = <pmix_app_t *> it.room(count * sizeof(pmix_app_t))
        cdef pmix_app_t *app
        cdef pmix_info_t *hints = it.infos(2)
        cdef size_t hints_count = 2 if placement else 1
        cdef char **variables = it.strings([os.fsencode(word) for word in environment])
        cdef pmix_status_t status
        for place in range(count):
            order, app = orders[place], &apps[place]
            command = os.fsencode(order.command)
            app.cmd = it.string(command)
            app.argv = it.strings([command, *(os.fsencode(word) for word in order.arguments)])
            app.env = variables
            app.cwd = it.string(os.fsencode(order.info.get("wdir") or os.getcwd()))
            app.maxprocs = order.count
            if order.info.get("host"):
                app.info, app.ninfo = it.infos(1), 1
                it.label(app.info, b"pmix.host", TYPE_STRING)
                app.info.value.data.string = it.string(os.fsencode(order.info["host"]))
        # To cores of their own, as PRRTE would, more processes than there are cores left would not start.
        it.label(&hints[0], b"pmix.bindto", TYPE_STRING)
        hints[0].value.data.string = it.string(b"none")
        if placement:
            it.label(&hints[1], b"pmix.mapby", TYPE_STRING)
            hints[1].value.data.string = it.string(os.fsencode(placement))
        with nogil:
            status = self.spawn_nb(hints, hints_count, apps, count, started, &it.answer)
        try:
            self.end_operation(it, status, f"has started nothing of {orders[0].command}", seconds, serve, ERR_SPAWN)
        except MPIError:
            if ERR_NOT_SUPPORTED in (status, it.answer.status):
                return None
            raise
        return it.result().decode("utf-8", "replace") if it.answer.content != NULL else ""

    # -- what happens

    def events(self, seconds: float = 0) -> list[tuple[str, int, int, int | None]]:
        """All since the last time: whom it befell (namespace, rank), the PMIx status, the exit code where it is told.

        Parameters:
            seconds: where there is nothing, wait for it as long.

        Errors: EOFError when the server has gone.
        """
        cdef pollfd asked = pollfd(self.descriptor, POLLIN, 0)
        cdef int milliseconds = int(1000 * seconds)
        if milliseconds:
            with nogil:
                poll(&asked, 1, milliseconds)
        if server_is_lost:
            raise EOFError
        cdef uint64_t rings
        read(self.descriptor, &rings, sizeof(rings))
        cdef Event *event = <Event *> take(&happenings)
        cdef Event *next_event
        told = []
        while event != NULL:
            code = None if event.code == NO_CODE else event.code
            told.append((event.nspace.decode("utf-8", "replace"), <int64_t> event.rank, event.status, code))
            next_event = event.next
            free(event)
            event = next_event
        told.reverse()
        return told

    def words(self, status: int) -> str:
        """What the library calls a status."""
        return self.error_string(status).decode("utf-8", "replace")
