"""A rank of a job whose files the component under test serves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ompy.core.file import MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_RDWR
from ompy.mca import discovery, loading
from ompy.testing.conformance.check import Breach
from ompy.testing.conformance.mpi.rank import MpiRank
from ompy.testing.conformance.wire import Wire

if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy.core.file import File


class FileRank(MpiRank):
    """One rank.

    Attributes:
        world: the communicator of all ranks.
        declared: the component's capabilities.
    """

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        from ompy.mpi.environment import instance

        self.world: Communicator = instance().world
        self.framework = wire.setting.framework
        found = discovery.installed()[self.framework][wire.setting.component]
        self.declared = loading.load(found).component.capabilities
        self.opened = 0

    def path(self, alone: bool) -> str:
        """A name that no file has yet, of the form that the component's files have; without `alone` the same on all ranks."""
        self.opened += 1
        folder = self.declared.get("path", tempfile.gettempdir() + os.sep)
        whose = f"-{self.rank}" if alone else ""
        return f"{folder}{self.wire.setting.job}-{self.opened}{whose}"

    def files(self) -> set[str]:
        """What lies in the folders for temporary files and for shared memory, and names this job."""
        return {
            os.path.join(folder, name)
            for folder in (tempfile.gettempdir(), "/dev/shm")
            for name in os.listdir(folder)
            if self.wire.setting.job in name
        }

    @contextmanager
    def file(
        self, *, alone: bool = False, mode: int = MODE_RDWR | MODE_CREATE | MODE_DELETE_ON_CLOSE, **hints: str
    ) -> Iterator[File]:
        """A new file, opened by every rank for itself or by all together; it is gone afterwards."""
        from ompy.runtime import identity
        from ompy.runtime.files import close_file, open_file

        comm = identity.own if alone else self.world
        file = open_file(comm, self.path(alone), mode, hints)
        if self.module(file).component != self.wire.setting.component:
            reasons = [reason for framework, component, *_, reason in file.verdicts if component == self.wire.setting.component]
            raise Breach("offer", f"{file.path} is served by {self.module(file).component}: {reasons}")
        yield file
        close_file(file)

    def module(self, file: File) -> Any:
        """The component's part in a file."""
        return file.module if self.framework == "io" else file.parts[self.framework]
