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

from libc.string cimport memcpy, memset, strncpy

from ompy_rte_pmix cimport events as pmix_events
from ompy_rte_pmix.events cimport HEARD
from ompy_rte_pmix.interface cimport *
from ompy_rte_pmix.operation cimport POLLIN, Operation, answered, finished, found, poll, pollfd, registered, started

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

cdef extern from "<unistd.h>" nogil:
    int close(int descriptor)

cdef extern from "<signal.h>" nogil:
    ctypedef struct sigset_t:
        pass
    int SIG_SETMASK
    int sigfillset(sigset_t *signals)
    int pthread_sigmask(int how, const sigset_t *signals, sigset_t *before)

LEAST, MOST = (3, 1), (6, 99)  # versions whose interface `interface.pxd` is
LONGEST_KEY = MAX_KEYLEN
JOB_END = EVENT_JOB_END


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
        cdef void *address = dlsym(self.library, name)
        if address == NULL:
            raise MPIError(ERR_INTERN, f"{self.path} has no {name.decode()}")
        return address

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
        strncpy(pmix_events.own_nspace, proc.nspace, MAX_NSLEN)
        self.descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        pmix_events.bell = self.descriptor
        it = self.begin_operation()
        with nogil:
            status = self.register_event_handler(
                pmix_events.heard, HEARD, NULL, 0, pmix_events.happened, registered, &it.answer
            )
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
        close(self.descriptor)
        pmix_events.bell = self.descriptor = -1

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
            memcpy(procs[place].nspace, pmix_events.own_nspace, sizeof(pmix_events.own_nspace))
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
        if it.answer.status not in (ERR_LOST_CONNECTION, ERR_PARTIAL_SUCCESS) or pmix_events.server_is_lost:
            self.check(it.answer.status, "has given up a fence")
        return True  # also where a rank has failed on its way: all others are here

    def unheard(self) -> set[int]:
        """Ranks of this job whose failure `events` has yet to tell."""
        return pmix_events.untold_failures()

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
        if pmix_events.server_is_lost:
            raise EOFError
        return pmix_events.take_events()

    def words(self, status: int) -> str:
        """What the library calls a status."""
        return self.error_string(status).decode("utf-8", "replace")
