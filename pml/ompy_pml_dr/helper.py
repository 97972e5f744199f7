"""A thread that goes on acknowledging, and sending again, while the program computes."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from ompy.core.progress import progress_once


class Helper:
    """Polls the engine now and then until it is stopped.

    A peer can't tell a rank that computes for long from one that is gone, and waits for what was lost on the way to it.

    Parameters:
        interval: seconds between two looks.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.running = allocate_lock()  # held until the thread is to end
        self.ended = allocate_lock()  # held until it has
        self.running.acquire()
        self.ended.acquire()
        self.stopped = False
        start_new_thread(self.run, ())

    def run(self) -> None:
        try:
            while not self.running.acquire(timeout=self.interval):
                progress_once()
        finally:
            self.ended.release()

    def stop(self) -> None:
        """End the thread, and wait until it has ended; again is harmless."""
        if not self.stopped:
            self.stopped = True
            self.running.release()
            self.ended.acquire()
