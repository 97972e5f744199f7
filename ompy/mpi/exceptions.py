"""The exception of the MPI layer (MPI-4.1, 9.4)."""

from __future__ import annotations

from ompy.core.errors import ERR_UNKNOWN, SUCCESS, MPIError, error_class, error_string

__all__ = ["Exception"]

_Base = MPIError


class Exception(_Base):
    """
    An MPI error: compares with, hashes as and converts to its integer error code (MPI-4.1, 9.4).

    Parameters:
        ierr: error class or code; a negative number counts as ERR_UNKNOWN.
        detail: which argument or rank, and what was expected.  It is part of `str(error)`.
    """

    def __init__(self, ierr: int = SUCCESS, detail: str = "", /) -> None:
        super().__init__(ERR_UNKNOWN if ierr < SUCCESS else ierr, detail)

    def __int__(self) -> int:
        return self.code

    def __bool__(self) -> bool:
        return self.code != SUCCESS

    def __hash__(self) -> int:
        return hash(self.code)

    def __eq__(self, other: object) -> bool:
        return self.code == (other.code if isinstance(other, MPIError) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: int | Exception) -> bool:
        return self.code < int(other)

    def __le__(self, other: int | Exception) -> bool:
        return self.code <= int(other)

    def __gt__(self, other: int | Exception) -> bool:
        return self.code > int(other)

    def __ge__(self, other: int | Exception) -> bool:
        return self.code >= int(other)

    def __repr__(self) -> str:
        return f"MPI.Exception({self.code})"

    def __str__(self) -> str:
        words = self.Get_error_string()
        return f"{words}: {self.detail}" if self.detail else words

    def Get_error_code(self) -> int:
        """The error code that the exception was made with (MPI-4.1, 9.4)."""
        return self.code

    def Get_error_class(self) -> int:
        """The standard class of the error code (MPI-4.1, 9.4)."""
        return error_class(self.code)

    def Get_error_string(self) -> str:
        """The words for the error code (MPI-4.1, 9.4)."""
        return error_string(self.code)

    @property
    def error_code(self) -> int:
        """The error code that the exception was made with (MPI-4.1, 9.4)."""
        return self.Get_error_code()

    @property
    def error_class(self) -> int:
        """The standard class of the error code (MPI-4.1, 9.4)."""
        return self.Get_error_class()

    @property
    def error_string(self) -> str:
        """The words for the error code (MPI-4.1, 9.4)."""
        return self.Get_error_string()
