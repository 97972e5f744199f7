"""Processes that join a job while it runs (MPI-4.1, chapter 11): what a program that asks for them is told.

This version of ompy starts all processes of a job together.  The calls that would add some raise NotImplementedError, as
mpi4py's do over a library that lacks them, so that programs can look for another way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["Close_port", "Lookup_name", "Open_port", "Publish_name", "Unpublish_name"]

WORKERS = "start the workers with the job: ompyrun -n N python -m mpi4py.futures PROGRAM, or programs separated by ':'"
ONE_JOB = "start both programs as one job, separated by ':' on ompyrun's command line"


def refuse(call: str, instead: str) -> NoReturn:
    """Raise NotImplementedError with what to do instead."""
    raise NotImplementedError(f"{call}: this version of ompy adds no processes to a running job; {instead}")


def Open_port(info: object = None) -> NoReturn:
    """An address where others can connect (MPI-4.1, 11.9.2).  Raises NotImplementedError."""
    refuse("Open_port", ONE_JOB)


def Close_port(port_name: str) -> NoReturn:
    """Give an address back (MPI-4.1, 11.9.2).  Raises NotImplementedError."""
    refuse("Close_port", ONE_JOB)


def Publish_name(service_name: str, port_name: str, info: object = None) -> NoReturn:
    """Make an address known under a name (MPI-4.1, 11.9.4).  Raises NotImplementedError."""
    refuse("Publish_name", ONE_JOB)


def Unpublish_name(service_name: str, port_name: str, info: object = None) -> NoReturn:
    """Take a name back (MPI-4.1, 11.9.4).  Raises NotImplementedError."""
    refuse("Unpublish_name", ONE_JOB)


def Lookup_name(service_name: str, info: object = None) -> NoReturn:
    """The address known under a name (MPI-4.1, 11.9.4).  Raises NotImplementedError."""
    refuse("Lookup_name", ONE_JOB)
