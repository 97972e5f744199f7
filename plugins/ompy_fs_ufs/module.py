"""Files as a whole, by the operating system's calls."""

from __future__ import annotations

import errno
import os

from ompy.core.file import MODE_RDONLY, MODE_WRONLY
from ompy.mca.file_errors import file_error
from ompy.mca.fs import FsModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.file import File


class Ufs(FsModule):
    """One file.

    Attributes:
        name, absolute: what it was opened by, and where that was then; empty before.
    """

    name = absolute = ""

    def open(self, file: File, create: bool, exclusive: bool) -> int:
        """Open it; the descriptor closes on exec."""
        flags = os.O_CLOEXEC | (os.O_CREAT if create else 0) | (os.O_EXCL if exclusive else 0)
        flags |= os.O_RDONLY if file.mode & MODE_RDONLY else os.O_RDWR
        permissions = file.hints.number("file_perm")
        try:
            try:
                descriptor = os.open(file.path, flags, permissions)
            except PermissionError:
                if not file.mode & MODE_WRONLY:
                    raise
                # Then nobody reads between the pieces of a view, to write them back.
                descriptor = os.open(file.path, flags ^ os.O_RDWR | os.O_WRONLY, permissions)
                file.readable = False
            # Reading is all that the kernel lets one do with a directory, and it would say so at the first read only.
            if os.path.isdir(file.path):
                os.close(descriptor)
                raise IsADirectoryError(21, "is a directory")
        except OSError as error:
            raise file_error(file.path, "open", error.errno or 0) from error
        file.descriptor = descriptor
        # The program may be in another directory when the name is removed.
        self.name, self.absolute = file.path, os.path.abspath(file.path)
        return 0

    def close(self, file: File) -> int:
        """Give the descriptor back."""
        descriptor, file.descriptor = file.descriptor, -1
        try:
            os.close(descriptor)
        except OSError as error:
            raise file_error(file.path, "close", error.errno or 0) from error
        return 0

    def delete(self, path: str) -> int:
        """Remove the name."""
        try:
            os.unlink(self.absolute if path == self.name else path)
        except OSError as error:
            raise file_error(path, "delete", error.errno or 0) from error
        return 0

    def size(self, file: File) -> int:
        """Bytes that it has."""
        try:
            return os.fstat(file.descriptor).st_size
        except OSError as error:
            raise file_error(file.path, "size", error.errno or 0) from error

    def resize(self, file: File, size: int) -> int:
        """Cut off or add zeros."""
        try:
            os.ftruncate(file.descriptor, size)
        except OSError as error:
            raise file_error(file.path, f"resize to {size} bytes", error.errno or 0) from error
        return 0

    def preallocate(self, file: File, size: int) -> int:
        """Have the file system set the blocks aside."""
        try:
            if size > 0:
                # The kernel would find out at the end of a full device, and leave it full.
                there, device = os.fstat(file.descriptor), os.fstatvfs(file.descriptor)
                if size - 512 * there.st_blocks > device.f_bavail * device.f_frsize:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.posix_fallocate(file.descriptor, 0, size)
        except OSError as error:
            raise file_error(file.path, f"preallocate {size} bytes", error.errno or 0) from error
        return 0

    def sync(self, file: File) -> int:
        """Until it is on the device."""
        try:
            os.fsync(file.descriptor)
        except OSError as error:
            raise file_error(file.path, "sync", error.errno or 0) from error
        return 0
