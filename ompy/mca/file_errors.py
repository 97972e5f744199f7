"""What an operating system says of a file, in the error classes of MPI-4.1, 14.7."""

from __future__ import annotations

import errno
import os

from ompy.core.errors import (
    ERR_ACCESS,
    ERR_BAD_FILE,
    ERR_FILE_EXISTS,
    ERR_FILE_IN_USE,
    ERR_IO,
    ERR_NO_SPACE,
    ERR_NO_SUCH_FILE,
    ERR_QUOTA,
    ERR_READ_ONLY,
    ERR_UNSUPPORTED_OPERATION,
    MPIError,
)

CLASSES = {
    errno.EACCES: ERR_ACCESS,
    errno.EPERM: ERR_ACCESS,
    errno.EISDIR: ERR_BAD_FILE,
    errno.ENOTDIR: ERR_BAD_FILE,
    errno.ENAMETOOLONG: ERR_BAD_FILE,
    errno.ELOOP: ERR_BAD_FILE,
    errno.EEXIST: ERR_FILE_EXISTS,
    errno.EBUSY: ERR_FILE_IN_USE,
    errno.ETXTBSY: ERR_FILE_IN_USE,
    errno.ENOSPC: ERR_NO_SPACE,
    errno.EFBIG: ERR_NO_SPACE,
    errno.ENOENT: ERR_NO_SUCH_FILE,
    errno.EDQUOT: ERR_QUOTA,
    errno.EROFS: ERR_READ_ONLY,
    errno.EOPNOTSUPP: ERR_UNSUPPORTED_OPERATION,
    errno.ENOSYS: ERR_UNSUPPORTED_OPERATION,
}


def file_error(path: str, doing: str, number: int) -> MPIError:
    """The error for an `errno` that came up while something was done to a file.

    Parameters:
        doing: "open", "write 8 bytes at 4096", ...
    """
    return MPIError(CLASSES.get(number, ERR_IO), f"{path}: {doing}: {os.strerror(number)}")
