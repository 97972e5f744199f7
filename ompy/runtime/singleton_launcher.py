"""`python -m ompy.runtime.singleton_launcher DESCRIPTOR NAME`: the launcher of a process that began without one, and spawns.

python prog.py                     launcher                     ranks of spawned jobs
  Spawn: starts the launcher   ->    |
  PMI over the descriptor     <->    | starts and serves   <->
  finalises                    ->    | stays until they have ended
  or goes without a word       ->    | ends them

A spawned job that fails ends those among the others with which it is connected, and the launcher starts the next.
"""

from __future__ import annotations

import os
import sys

from ompy.runtime.job import Job, Share
from ompy.runtime.launcher import SAME_FAILURE, JobSpace, Launcher
from ompy.runtime.pmi_server import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.rank import Rank


class SingletonLauncher(Launcher):
    """A launcher whose first job was there before it.

    Parameters:
        descriptor: PMI with the one process of that job.
        name: of that job, as its process has it.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(Job([], []))
        self.descriptor = descriptor
        os.set_inheritable(descriptor, False)
        self.spaces[0] = JobSpace(name, 0, 1, self)
        self.session = Session(self.spaces[0], 0, 0, self.send)

    def start(self) -> bool:
        try:
            self.local.make_room(Share(self.job, []))
        except OSError as error:
            self.fail(1, f"the system has no room for another launcher: {error.strerror}")
            return False
        self.loop.watch(self.descriptor, self.on_words)
        return True

    def send(self, data: bytes) -> None:
        if self.descriptor >= 0:  # else it has gone, and is told nothing
            os.write(self.descriptor, data)

    def is_running(self) -> bool:
        return self.descriptor >= 0 or super().is_running()

    def fail_connected(self, it: Rank, code: int, message: str) -> None:
        """The process that was there before goes on, and so does what it has spawned beside."""
        if not self.has_failed and self.told_to_end is None and self.spawned.end_connected(it.job, SAME_FAILURE):
            self.note(code, message)

    def on_words(self) -> None:
        try:
            data = os.read(self.descriptor, 65536)
            if data:
                self.session.receive(data)
        except (OSError, ValueError) as error:
            self.fail(1, f"the process that has spawned others: {error}")
            data = b""
        if not data:
            self.loop.unwatch(self.descriptor)
            os.close(self.descriptor)
            self.descriptor = -1
            if not self.session.finalised and super().is_running():
                self.fail(1, "the process that has spawned them has gone without finalising MPI")


if __name__ == "__main__":
    sys.exit(SingletonLauncher(int(sys.argv[1]), sys.argv[2]).run())
