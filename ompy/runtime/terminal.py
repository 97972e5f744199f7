"""What a person types, handed to one rank.

A rank is in a session of its own, so it can't read from the terminal; the launcher, which is in the terminal's
foreground, reads for it.  Input that is no terminal, or another session's, needs no such help: the rank inherits it,
and what it does not read stays for whoever comes next (`while read line; do ompyrun ...; done`).
"""

from __future__ import annotations

import os

LIMIT = 65536


class TerminalInput:
    """Standard input, when it is a terminal, and a pipe to a rank.

    Attributes:
        reader: the rank's end of the pipe.
        pending: typed, but not yet taken by the rank.
        ended: end of file was typed, or the terminal has gone.
    """

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        self.pending = b""
        self.ended = False

    @staticmethod
    def is_needed() -> bool:
        """Whether standard input is the terminal of the launcher's session, which alone has a foreground."""
        try:
            os.tcgetpgrp(0)
        except OSError:
            return False
        return os.isatty(0)

    @staticmethod
    def is_ours() -> bool:
        """Whether the launcher is in the terminal's foreground; what is typed otherwise is not for this job."""
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return True  # it has gone, as reading says too

    def read(self) -> None:
        """Take what was typed."""
        try:
            data = os.read(0, LIMIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.pending += data
        self.ended = not data
        self.write()

    def write(self) -> None:
        """Give the rank what it takes."""
        try:
            while self.pending:
                self.pending = self.pending[os.write(self.writer, self.pending) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.pending = b""
            self.ended = True
        if self.ended and self.writer >= 0:
            os.close(self.writer)
            self.writer = -1
