# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Memory that processes of one user on one host share."""
import errno
import os

from ompy.core.reach cimport Reach, is_ending

from ompy.core.errors import ERR_NO_MEM, ERR_OTHER, ERR_PROC_FAILED, MPIError

cdef extern from "<sys/mman.h>" nogil:
    void *mmap(void *address, size_t length, int protection, int flags, int descriptor, long offset)
    int munmap(void *address, size_t length)
    void *MAP_FAILED
    int PROT_NONE, PROT_READ, PROT_WRITE
    int MAP_SHARED, MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED, MAP_NORESERVE
cdef extern from "<unistd.h>" nogil:
    int close_descriptor "close"(int descriptor)

FILE_DIRECTORY = "/dev/shm"

# The job whose name files carry, so that its launcher can sweep what a killed rank has left.
cdef str job_name = ""

page_size = os.sysconf("SC_PAGE_SIZE")

# Bytes from which on the system is asked what it has before it is asked for them.
cdef size_t LARGE = 64 << 20


cdef class Segment:
    def __cinit__(self):
        self.descriptor = -1
        self.path = ""

    def __dealloc__(self):
        if self.address != NULL:
            munmap(self.address, self.mapped)
        if self.descriptor >= 0:
            close_descriptor(self.descriptor)

    cdef int map(self, size_t mirror) except -1:
        cdef size_t again = self.size - mirror if mirror else 0
        cdef char *start = <char *> mmap(NULL, self.size + again, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        if <void *> start == MAP_FAILED:
            raise MPIError(ERR_NO_MEM, f"no {self.size + again} bytes of address space for a shared segment")
        cdef int access = PROT_READ | PROT_WRITE
        cdef int flags = MAP_SHARED | MAP_FIXED
        if mmap(start, self.size, access, flags, self.descriptor, 0) == MAP_FAILED or (
            again and mmap(start + self.size, again, access, flags, self.descriptor, mirror) == MAP_FAILED
        ):
            munmap(start, self.size + again)
            raise MPIError(ERR_NO_MEM, f"a shared segment of {self.size} bytes can't be mapped")
        self.address = start
        self.mapped = self.size + again
        return 0

    cpdef bytes location(self):
        return (self.path or f"{os.getpid()}:{self.descriptor}").encode()

    cpdef int seal(self) except -1:
        # Forgotten before it is closed: a system call lets other threads in.
        cdef int descriptor = self.descriptor
        cdef bint owner = self.owner
        self.descriptor = -1
        self.owner = False
        if descriptor >= 0:
            os.close(descriptor)
        if self.path and owner:
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                pass                             # a launcher that cleans up was quicker
        return 0

    cpdef int close(self) except -1:
        self.seal()
        if self.address != NULL:
            munmap(self.address, self.mapped)
            self.address = NULL
        return 0


def belong_to(str job not None) -> None:
    """Files made from now on carry this job's name."""
    global job_name
    job_name = job.replace("/", "-")


cpdef Segment create(str name, size_t size, str backing="auto", size_t mirror=0):
    """Makes a segment, zeroed and reserved.

    Parameters:
        name: seen in /proc/<pid>/maps, and part of a file's name.
        size: bytes; rounded up to whole pages.
        backing: `memfd`, `file`, or `auto`: a memfd where peers can open it.
        mirror: offset, in bytes, of the part to be mapped twice (a multiple of the page size); 0 for none.
    Raises:
        MPIError: ERR_NO_MEM when memory is short.
    """
    cdef Segment segment = Segment.__new__(Segment)
    segment.size = (size + page_size - 1) // page_size * page_size
    segment.owner = True
    if backing != "file":
        segment.descriptor = _memfd(name, backing)
    if segment.descriptor < 0:
        _make_file(segment, name)
    try:
        os.fchmod(segment.descriptor, 0o600)
        if segment.size > LARGE and segment.size > _available():
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        os.posix_fallocate(segment.descriptor, 0, segment.size)
        segment.map(mirror)
    except OSError as error:
        segment.seal()
        raise MPIError(ERR_NO_MEM, _shortage(segment, error)) from error
    except BaseException:
        segment.seal()
        raise
    return segment


def create_sparse(str name not None, size_t size) -> Segment:
    """Makes a memfd whose pages are made when they are touched, of any size that the address space has room for.

    Raises:
        MPIError: ERR_OTHER where peers can't open a memfd, ERR_NO_MEM when there is no room to map it.
    """
    cdef Segment segment = Segment.__new__(Segment)
    segment.size = (size + page_size - 1) // page_size * page_size
    segment.owner = True
    segment.descriptor = _memfd(name, "memfd")
    try:
        os.fchmod(segment.descriptor, 0o600)
        os.ftruncate(segment.descriptor, segment.size)
        segment.map(0)
    except OSError as error:
        segment.seal()
        raise MPIError(ERR_NO_MEM, _shortage(segment, error)) from error
    except BaseException:
        segment.seal()
        raise
    return segment


cdef bint has_died(int pid) except -1:
    """Whether a process whose descriptors can't be found has gone, or goes within a second."""
    cdef Reach reach = Reach(pid, -1, NULL, 0, 0)
    cdef bint ended
    try:
        reach.pidfd = os.pidfd_open(pid)         # which also knows of one whose parent has not asked for it yet
    except ProcessLookupError:
        return True
    except OSError:
        pass                                     # an old kernel, or no descriptor is left
    try:
        with nogil:
            ended = is_ending(&reach)
    finally:
        if reach.pidfd >= 0:
            close_descriptor(reach.pidfd)
    return ended


cpdef Segment attach(bytes location, size_t size, size_t mirror=0):
    """Maps a peer's segment.

    Parameters:
        location: what the maker's `location()` returned.
        size: bytes that it must have at least.
        mirror: as in `create`.
    Raises:
        MPIError: ERR_PROC_FAILED when its maker has died; ERR_OTHER when it can't be opened or is not what it should be.
    """
    cdef Segment segment = Segment.__new__(Segment)
    cdef int maker = 0
    place = location.decode()
    if not place.startswith("/"):
        pid, number = place.split(":")
        maker = int(pid)
        place = f"/proc/{maker}/fd/{int(number)}"
    try:
        segment.descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        if maker and error.errno in (errno.ENOENT, errno.ESRCH) and has_died(maker):
            raise MPIError(ERR_PROC_FAILED, f"process {maker} has died") from error
        raise MPIError(ERR_OTHER, f"shared segment {place} of a peer can't be opened: {error.strerror}") from error
    try:
        found = os.fstat(segment.descriptor)
        if found.st_size < size or found.st_uid != os.geteuid():
            raise MPIError(
                ERR_OTHER,
                f"{place} is not the shared segment that was announced: {found.st_size} bytes of user {found.st_uid}, "
                f"expected {size} or more of user {os.geteuid()}",
            )
        segment.size = (size + page_size - 1) // page_size * page_size
        segment.map(mirror)
    finally:
        os.close(segment.descriptor)
        segment.descriptor = -1
    return segment


def _available() -> int:
    """Bytes that the system can give without ending a process for them (proc(5), meminfo).

    It would not refuse what it does not have: whole pages of a memfd are given one by one until there are none.
    """
    free = 0
    try:
        with open("/proc/meminfo") as stream:
            for line in stream:
                if line.startswith(("MemAvailable:", "SwapFree:")):
                    free += int(line.split()[1]) << 10
    except OSError:
        pass
    return free or 1 << 62


def _memfd(name: str, backing: str) -> int:
    """A memfd that peers can open, or -1 when `auto` has to make do with a file."""
    descriptor = -1
    try:
        descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        os.close(os.open(f"/proc/{os.getpid()}/fd/{descriptor}", os.O_RDWR))
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        if backing == "memfd":
            raise MPIError(ERR_OTHER, f"no memfd that peers can open: {error.strerror}; try backing 'file'") from error
        return -1
    return descriptor


def _make_file(Segment segment, str name) -> None:
    for attempt in range(1000):
        path = f"{FILE_DIRECTORY}/{name}.{job_name}.{os.getpid()}.{attempt}"
        try:
            segment.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise MPIError(ERR_OTHER, f"no shared file {path}: {error.strerror}") from error
        segment.path = path
        return
    raise MPIError(ERR_OTHER, f"{FILE_DIRECTORY} holds 1000 files {name}.{job_name}.{os.getpid()}.*: remove them")


def _shortage(Segment segment, error: OSError) -> str:
    where = FILE_DIRECTORY if segment.path else "shared memory"
    text = f"{where} has no room for a segment of {segment.size} bytes ({error.strerror})"
    if segment.path:
        free = os.statvfs(FILE_DIRECTORY)
        text += f"; {free.f_bavail * free.f_frsize} bytes are free there: enlarge it, or use backing 'memfd'"
    return text
