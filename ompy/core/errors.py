"""MPI error classes (MPI-4.1, 9.4) and the exception that carries one."""

from __future__ import annotations

SUCCESS = 0
ERR_BUFFER = 1
ERR_COUNT = 2
ERR_TYPE = 3
ERR_TAG = 4
ERR_COMM = 5
ERR_RANK = 6
ERR_REQUEST = 7
ERR_ROOT = 8
ERR_GROUP = 9
ERR_OP = 10
ERR_TOPOLOGY = 11
ERR_DIMS = 12
ERR_ARG = 13
ERR_UNKNOWN = 14
ERR_TRUNCATE = 15
ERR_OTHER = 16
ERR_INTERN = 17
ERR_IN_STATUS = 18
ERR_PENDING = 19
ERR_ACCESS = 20
ERR_AMODE = 21
ERR_ASSERT = 22
ERR_BAD_FILE = 23
ERR_BASE = 24
ERR_CONVERSION = 25
ERR_DISP = 26
ERR_DUP_DATAREP = 27
ERR_FILE_EXISTS = 28
ERR_FILE_IN_USE = 29
ERR_FILE = 30
ERR_INFO_KEY = 31
ERR_INFO_NOKEY = 32
ERR_INFO_VALUE = 33
ERR_INFO = 34
ERR_IO = 35
ERR_KEYVAL = 36
ERR_LOCKTYPE = 37
ERR_NAME = 38
ERR_NO_MEM = 39
ERR_NOT_SAME = 40
ERR_NO_SPACE = 41
ERR_NO_SUCH_FILE = 42
ERR_PORT = 43
ERR_QUOTA = 44
ERR_READ_ONLY = 45
ERR_RMA_CONFLICT = 46
ERR_RMA_SYNC = 47
ERR_SERVICE = 48
ERR_SIZE = 49
ERR_SPAWN = 50
ERR_UNSUPPORTED_DATAREP = 51
ERR_UNSUPPORTED_OPERATION = 52
ERR_WIN = 53
ERR_RMA_RANGE = 55
ERR_RMA_ATTACH = 56
ERR_RMA_FLAVOR = 57
ERR_RMA_SHARED = 58
ERR_SESSION = 59
ERR_PROC_ABORTED = 60
ERR_VALUE_TOO_LARGE = 61
ERR_ERRHANDLER = 62
ERR_ABI = 63
ERR_PROC_FAILED = 75
ERR_PROC_FAILED_PENDING = 76
ERR_REVOKED = 77
ERR_LASTCODE = 92

# The words of MPI_Error_string.
DESCRIPTIONS: dict[int, str] = {
    SUCCESS: "no error",
    ERR_BUFFER: "invalid buffer pointer",
    ERR_COUNT: "invalid count argument",
    ERR_TYPE: "invalid datatype",
    ERR_TAG: "invalid tag",
    ERR_COMM: "invalid communicator",
    ERR_RANK: "invalid rank",
    ERR_REQUEST: "invalid request",
    ERR_ROOT: "invalid root",
    ERR_GROUP: "invalid group",
    ERR_OP: "invalid reduce operation",
    ERR_TOPOLOGY: "invalid communicator topology",
    ERR_DIMS: "invalid topology dimension",
    ERR_ARG: "invalid argument of some other kind",
    ERR_UNKNOWN: "unknown error",
    ERR_TRUNCATE: "message truncated",
    ERR_OTHER: "known error not in list",
    ERR_INTERN: "internal error",
    ERR_IN_STATUS: "error code in status",
    ERR_PENDING: "pending request",
    ERR_ACCESS: "permission denied",
    ERR_AMODE: "invalid file access mode",
    ERR_ASSERT: "invalid assert argument",
    ERR_BAD_FILE: "invalid file name",
    ERR_BASE: "invalid base pointer",
    ERR_CONVERSION: "error in a data conversion function",
    ERR_DISP: "invalid displacement",
    ERR_DUP_DATAREP: "data representation already defined",
    ERR_FILE_EXISTS: "file exists",
    ERR_FILE_IN_USE: "file in use",
    ERR_FILE: "invalid file handle",
    ERR_INFO_KEY: "invalid info key",
    ERR_INFO_NOKEY: "no such info key",
    ERR_INFO_VALUE: "invalid info value",
    ERR_INFO: "invalid info object",
    ERR_IO: "input or output error",
    ERR_KEYVAL: "invalid attribute key",
    ERR_LOCKTYPE: "invalid lock type",
    ERR_NAME: "service name not found",
    ERR_NO_MEM: "out of memory",
    ERR_NOT_SAME: "objects are not the same on all processes",
    ERR_NO_SPACE: "no space left on device",
    ERR_NO_SUCH_FILE: "no such file or directory",
    ERR_PORT: "invalid port",
    ERR_QUOTA: "out of quota",
    ERR_READ_ONLY: "file is read only",
    ERR_RMA_CONFLICT: "conflicting accesses to window",
    ERR_RMA_SYNC: "wrong synchronization of one-sided communication",
    ERR_SERVICE: "invalid publish or unpublish",
    ERR_SIZE: "invalid size",
    ERR_SPAWN: "could not spawn processes",
    ERR_UNSUPPORTED_DATAREP: "data representation not supported",
    ERR_UNSUPPORTED_OPERATION: "operation not supported",
    ERR_WIN: "invalid window",
    ERR_RMA_RANGE: "memory out of the window's range",
    ERR_RMA_ATTACH: "could not attach memory",
    ERR_RMA_FLAVOR: "wrong flavor of window",
    ERR_RMA_SHARED: "memory cannot be shared",
    ERR_SESSION: "invalid session",
    ERR_PROC_ABORTED: "a peer process was aborted",
    ERR_VALUE_TOO_LARGE: "value is too large to store",
    ERR_ERRHANDLER: "invalid error handler",
    ERR_ABI: "no such binary interface",
    ERR_PROC_FAILED: "a peer process failed",
    ERR_PROC_FAILED_PENDING: "a peer process failed, the request is pending",
    ERR_REVOKED: "the communicator was revoked",
}

# Codes and classes that the program added (MPI-4.1, 9.5) -> their class.  A class is its own class.
ADDED: dict[int, int] = {}


def error_class(code: int) -> int:
    """The class that an error code belongs to; ERR_UNKNOWN for a number that is none."""
    if 0 <= code <= ERR_LASTCODE:
        return code
    return ADDED.get(code, ERR_UNKNOWN)


def error_string(code: int) -> str:
    """The words for an error code; empty for one that the program added without words."""
    if code in ADDED:
        return DESCRIPTIONS.get(code, "")
    return DESCRIPTIONS.get(code, f"error code {code}")


def code_of(error: BaseException) -> int:
    """The error code by which other ranks hear of it: ERR_OTHER for what is neither an MPI error nor want of memory."""
    if isinstance(error, MPIError):
        return error.code
    return ERR_NO_MEM if isinstance(error, MemoryError) else ERR_OTHER


class MPIError(RuntimeError):
    """An MPI error: a class or a code of the program's own, and what went wrong in words.

    `MPI.Exception` is a subclass that the MPI layer raises; everything below raises this one.

    Parameters:
        code: error class (the `ERR_*` numbers here) or a code added by the program.
        detail: which argument, which rank, what was expected; empty for the standard words alone.
    """

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        if self.code == ERR_OTHER and self.detail:
            return self.detail  # the class says no more than that there is no class for it
        words = DESCRIPTIONS.get(self.code, f"error code {self.code}")
        return f"{words}: {self.detail}" if self.detail else words
