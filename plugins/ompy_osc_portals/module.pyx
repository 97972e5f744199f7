# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""One-sided communication on Puma portals (MPI-4.1, chapter 12; MPI on portals, section 2).  See `module.pxd`."""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ompy.core.constants cimport OK
from ompy.core.owner cimport enter, leave
from ompy.core.proc cimport Proc
from ompy.core.progress_thread cimport dismiss, employ
from ompy.core.window cimport Window
from ompy.mca.bml cimport Bml, PeerRoutes
from ompy.mca.osc cimport INTERFACE
from ompy.mca.remote_window.ways cimport ADDRESS, BYTES, REGION, Attempt, Key, Way, key_of, require_living
from ompy.mca.remote_window.window cimport COMPLETED, POSTED, Tally
from ompy_osc_portals.station cimport PORTAL_COMPLETED, PORTAL_POSTED, station_over
from ompy_puma.memory cimport handle_of

from ompy.core.errors import MPIError
from ompy.mca.agreement import gathered

interface = INTERFACE


cdef class Notice(Attempt):
    """To a rank, that this one has posted or completed."""
    cdef Station station
    cdef uint64_t context
    cdef int portal

    cdef bint make(self) except -1:
        require_living(self.way, "before it was told of an epoch")
        enter()
        try:
            return self.station.count_up(self.portal, self.context, self.way.proc.index) == OK
        finally:
            leave()


cdef class PortalsWindow(RemoteWindow):
    """One window on portals.

    Parameters:
        window: which.
        bml: leads to the BTLs that the kernel rides on.
        node: this process's rank in its job.
        nodes: of the job.
        regions: stretches of memory that all windows may have.
    """

    def __init__(self, Window window not None, Bml bml not None, uint32_t node, int nodes, int regions):
        RemoteWindow.__init__(self, "portals", window, bml)
        self.node = node
        self.nodes = nodes
        self.regions = regions

    def reach(self) -> str:
        """Why the window can't be served, empty where it can; collective, and the same for all ranks."""
        reason = self.own_reason()
        for rank, row in enumerate(gathered(self.window.parent, [bool(reason)])):
            if row[0]:
                return reason or f"rank {rank} has no portals to all the others"
        return ""

    def own_reason(self) -> str:
        cdef int rank
        cdef Proc proc
        self.station = station_over(self.bml, self.node, self.regions)
        for rank in range(self.ranks):
            proc = self.window.communicator.group.proc(rank)
            if rank == self.rank:
                continue
            if proc.index >= self.nodes:
                return f"rank {rank} is a process of another job, which has portals of its own"
            enter()
            try:
                self.station.kernel.link_to(proc.index)
            except MPIError as error:
                return str(error)
            finally:
                leave()
        return ""

    cpdef int open(self) except -1:
        """Let the others in."""
        cdef int rank, portal
        self.context = self.window.communicator.context
        self.counters = []
        enter()
        try:
            for portal in (PORTAL_POSTED, PORTAL_COMPLETED):
                for rank in range(self.ranks):
                    self.counters.append(
                        self.station.new_counter(portal, self.context, self.window.communicator.group.members[rank]))
        finally:
            leave()
        self.starts = [self.count_of(POSTED, rank)[0] for rank in range(self.ranks)]
        self.waits = [self.count_of(COMPLETED, rank)[0] for rank in range(self.ranks)]
        RemoteWindow.open(self)
        if self.ranks > 1:
            employ()
            self.employs = True
        return 0

    def close(self):
        """Nobody accesses memory here any more."""
        cdef Way way
        cdef int entry
        if self.employs:
            self.employs = False
            dismiss()
        enter()
        try:
            for way in self.ways:
                if way.native is not None and way.proc.failure is not None:
                    self.station.bury(way.proc)
            for entry in self.counters:
                self.station.drop_counter(entry)
        finally:
            leave()
        self.counters = []
        RemoteWindow.close(self)

    # -- regions

    cdef int find_native(self, Way way, PeerRoutes routes) except -1:
        way.native = self.station
        way.endpoint = self.station.endpoint_of(way.proc)
        way.in_order = self.station.in_order(way.proc.index)
        return 0

    cdef list row_of(self, uint64_t address, uint64_t size, list held):
        cdef list row = RemoteWindow.row_of(self, address, size, held)
        if size:
            enter()
            try:
                self.station.memory.open_region(row[REGION], address, size)
            except BaseException:
                RemoteWindow.close_row(self, row, held)
                raise
            finally:
                leave()
        return row

    cdef int close_row(self, list row, list held) except -1:
        if row[BYTES]:
            enter()
            try:
                self.station.memory.close_region(row[REGION])
            finally:
                leave()
        return RemoteWindow.close_row(self, row, held)

    cdef Key native_key(self, Way way, list row):
        return key_of(row, way.native, way.endpoint, handle_of(row[REGION], row[ADDRESS]))

    # -- posts and completes

    cdef int64_t *count_of(self, Tally tally, int rank) noexcept:
        return self.station.count(<int> self.counters[rank if tally == POSTED else self.ranks + rank])

    cdef int count_up(self, Tally tally, int rank) except -1:
        cdef Notice notice
        if (<Way> self.ways[rank]).layer is None:
            self.count_of(tally, rank)[0] += 1
            return 0
        notice = Notice.__new__(Notice)
        notice.way, notice.station, notice.context = self.ways[rank], self.station, self.context
        notice.portal = PORTAL_POSTED if tally == POSTED else PORTAL_COMPLETED
        return self.persist(notice)
