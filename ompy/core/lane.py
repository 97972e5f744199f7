"""Threads of the library's own, which carry out what goes on by itself while the program does something else.

A lane is one thread, made at the first need, that does one thing after the other.  Independent accesses to files share one
lane; collective ones have a lane a file, because a rank that waits in one file's must not keep its peers waiting in another's.
"""

from __future__ import annotations

import os
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from queue import SimpleQueue
    from typing import Any, Protocol

    class Work(Protocol):
        complete: bool
        taken: bool

        def carry_out(self) -> None: ...


# Seconds that whoever closes a lane waits for its thread, which has nothing left to do but to end.
MOMENT = 1.0


class Lane:
    """One thread, and what it has to do."""

    # Threads of lanes in this process, for whoever looks for what is left.
    threads = 0

    def __init__(self) -> None:
        self.queue: SimpleQueue[Any] | None = None
        self.ended: LockType | None = None  # held until the thread has
        self.process = 0
        self.last: Work | None = None

    def put(self, work: Work) -> None:
        """Carry it out after all that is there already.

        It is carried out though a signal handler raises meanwhile: the interpreter runs those when a call has returned, and so
        everything is said before the thread begins.  `Thread.start` would wait, and can be left with a thread that dies.
        """
        from queue import SimpleQueue

        process = os.getpid()
        queue, ended = self.queue, self.ended
        # A child of fork has the queue, but not the thread.
        if queue is None or ended is None or self.process != process:
            queue, ended = SimpleQueue(), allocate_lock()
            queue.put(work)
            ended.acquire()
        # Another thread may have been quicker.
        if self.queue is not None and self.process == process:
            work.taken, self.last = True, work
            self.queue.put(work)
            return
        work.taken, self.queue, self.ended, self.process, self.last = True, queue, ended, process, work
        try:
            start_new_thread(run, (queue, ended))
        except RuntimeError:  # the system gives no thread
            self.queue = self.ended = None
            work.carry_out()

    def close(self) -> None:
        """The thread ends when it has done what is there; where that is nothing any more, it has ended on return."""
        queue, ended = self.queue, self.ended
        self.queue = self.ended = None
        if queue is not None and ended is not None and self.process == os.getpid():
            queue.put(None)
            if not self.busy and ended.acquire(timeout=MOMENT):
                ended.release()

    @property
    def busy(self) -> bool:
        """Whether something is not over yet."""
        return self.last is not None and not self.last.complete


def run(queue: SimpleQueue[Any], ended: LockType) -> None:
    Lane.threads += 1
    try:
        while (work := queue.get()) is not None:
            work.carry_out()
            del work
    finally:
        Lane.threads -= 1
        ended.release()


shared = Lane()
