"""A launcher of a process's own, behind it: of one that none has started, or one whose launcher starts nothing more.

It is started when it is first needed, speaks PMI-1 with this one process (`ompy.runtime.singleton_launcher`), and starts others
on this host.
"""

from __future__ import annotations

import os
import sys

from ompy.core.errors import ERR_SPAWN, MPIError
from ompy.mca.pmi_services import PmiServices
from ompy.mca.pmi_wire import Wire

PROGRAM = "ompy.runtime.singleton_launcher"


class OwnLauncher(PmiServices):
    """The way to it.

    Parameters:
        job: the name of this process's.
        is_on_one_host: whether all of that job are here.
    """

    is_own = True
    size = 1

    def __init__(self, job: str, is_on_one_host: bool = True) -> None:
        self.job = job
        self.is_on_one_host = is_on_one_host
        self.open: Wire | None = None

    @property
    def wire(self) -> Wire:  # type: ignore[override]
        if self.open is None:
            from socket import AF_UNIX, SOCK_STREAM, socketpair

            ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
            try:
                os.set_inheritable(theirs.fileno(), True)
                command = [sys.executable, "-m", PROGRAM, str(theirs.fileno()), self.job]
                os.posix_spawn(sys.executable, command, dict(os.environ), setsid=True)
            except OSError as error:
                ours.close()
                raise MPIError(ERR_SPAWN, f"no launcher can be started: {sys.executable}: {error.strerror}") from error
            finally:
                theirs.close()
            self.open = Wire(ours.detach())
            self.open.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")
        return self.open

    def publish(self, service: str, port: str) -> bool:
        return super().publish(service, port) if self.open is not None else False

    def lookup(self, service: str) -> str:
        return super().lookup(service) if self.open is not None else ""

    def unpublish(self, service: str) -> bool:
        return super().unpublish(service) if self.open is not None else False

    def leave_to_parent(self) -> None:
        """In a child made by fork: the launcher is its parent's."""
        if self.open is not None:
            self.open.close()

    def finalize(self) -> None:
        """It stays until those have ended whom it has started."""
        if self.open is not None:
            self.open.ask("finalize", "finalize_ack")
            self.open.close()
            self.open = None
