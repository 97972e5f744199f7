"""Signals as bytes on a descriptor, so that one loop sees them among everything else."""

from __future__ import annotations

import errno
import fcntl
import os
import signal

HANDLED = (
    signal.SIGCHLD,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTSTP,
    signal.SIGCONT,
)

# Asks a rank for its Python stacks; not one that a program is likely to use.
STACKS_SIGNAL = signal.SIGRTMIN + 5


def above_streams(descriptor: int) -> int:
    """The descriptor, moved behind those of the standard streams."""
    if descriptor > 2:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


class SignalQueue:
    """Catches the signals that a launcher deals with; `descriptor` is readable when there is one."""

    def __init__(self) -> None:
        # Never 0, 1 or 2, should one of them be closed here: what is done with a stream would be done with the pipe.
        self.descriptor, self.writer = map(above_streams, os.pipe())
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self.writer, False)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)
        for number in HANDLED:
            # What nohup has switched off stays off.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, frame: None)
        # A mask is inherited, and what started this process may have blocked what it was busy with.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

    def take(self) -> list[signal.Signals]:
        """The signals that have come since the last call, in order.  Raises OSError when none will come any more."""
        try:
            numbers = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return []
        if not numbers:
            raise OSError(errno.EPIPE, "somebody has closed the pipe through which signals are heard")
        return [signal.Signals(number) for number in numbers]


def name_of(number: int) -> str:
    """`SIGKILL` for 9; real-time signals, which have no names of their own, as `signal 40`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
