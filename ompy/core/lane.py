"""Threads of the library's own, which carry out what goes on by itself while the program does something else.

A lane is one thread, made at the first need, that does one thing after the other.  Independent accesses to files share one
lane; collective ones have a lane a file, because a rank that waits in one file's must not keep its peers waiting in another's.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queue import SimpleQueue
    from threading import Thread
    from typing import Any, Protocol

    class Work(Protocol):
        complete: bool

        def carry_out(self) -> None: ...


# Seconds that whoever closes a lane waits for its thread, which has nothing left to do but to end.
MOMENT = 1.0


class Lane:
    """One thread, and what it has to do."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[Any] | None = None
        self.thread: Thread | None = None
        self.process = 0
        self.last: Work | None = None

    def put(self, work: Work) -> None:
        """Carry it out after all that is there already."""
        from queue import SimpleQueue
        from threading import Thread

        # A child of fork has the queue, but not the thread.
        if self.queue is None or self.process != os.getpid():
            self.queue = SimpleQueue()
            self.process = os.getpid()
            self.thread = Thread(target=run, args=(self.queue,), name="ompy-lane", daemon=True)
            self.thread.start()
        self.last = work
        self.queue.put(work)

    def close(self) -> None:
        """The thread ends when it has done what is there; where that is nothing any more, it has ended on return."""
        queue, thread = self.queue, self.thread
        self.queue = self.thread = None
        if queue is not None and thread is not None and self.process == os.getpid():
            queue.put(None)
            if not self.busy:
                thread.join(MOMENT)

    @property
    def busy(self) -> bool:
        """Whether something is not over yet."""
        return self.last is not None and not self.last.complete


def run(queue: SimpleQueue[Any]) -> None:
    while (work := queue.get()) is not None:
        work.carry_out()
        del work


shared = Lane()
