"""Standard streams between the ranks and the person: output of all, input for one."""

from __future__ import annotations

import os
import time
from functools import partial

from ompy.runtime.output import Lines, Printer
from ompy.runtime.shared_input import SharedInput
from ompy.runtime.terminal import TerminalInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.job import Job
    from ompy.runtime.loop import Loop
    from ompy.runtime.process import Process

# Output that nobody has taken yet, in bytes: beyond HIGH the ranks are made to wait, below LOW they go on.
HIGH = 1024 * 1024
LOW = HIGH // 4
PIECE = 65536
# A prompt without a newline shows after this silence, in seconds.
PROMPT_DELAY = 0.1
# Processes that have left their rank's process group may hold its streams: their output is awaited this long.
ESCAPED = 0.25
# A job that has failed waits this long for a reader that takes nothing.
PATIENCE = 2.0
TYPING_PAUSE = 0.1
# What mpi4py's wheel says where it finds no MPI library.
NO_LIBRARY = b"RuntimeError: cannot load MPI library"


class Forwarder:
    """The launcher's own streams, and those of its ranks.

    Parameters:
        loop: watches the descriptors.
        job: says who reads standard input, and what becomes of what the ranks write.

    Attributes:
        no_library: some rank's mpi4py has found no MPI library.
    """

    def __init__(self, loop: Loop, job: Job) -> None:
        self.loop = loop
        self.stdin = job.stdin
        self.output = job.output
        self.host = os.uname().nodename
        self.printers = {1: Printer(1), 2: Printer(2)}
        self.streams: dict[int, Lines] = {}
        self.files: dict[str, Printer] = {}
        self.held = False
        self.no_library = False
        self.shared = SharedInput(loop) if self.stdin == job.EVERY_RANK else None
        self.terminal = TerminalInput() if self.stdin is not None and self.shared is None and os.isatty(0) else None

    # -- input

    def input_of(self, rank: int) -> int | None:
        """The descriptor that a rank inherits as standard input; None for an empty one."""
        if self.shared is not None:
            return self.shared.reader()
        if rank != self.stdin:
            return None
        return 0 if self.terminal is None else self.terminal.reader

    def begin_input(self) -> None:
        """Every rank has been started."""
        if self.shared is not None:
            self.shared.begin()
        if self.terminal is not None:
            os.close(self.terminal.reader)
            self.loop.watch(0, partial(self.on_typed, self.terminal))

    def on_typed(self, terminal: TerminalInput) -> None:
        if terminal.is_ours():
            terminal.read()
        if terminal.pending or terminal.ended or not terminal.is_ours():
            self.loop.unwatch(0)
            self.loop.set_timer("typed", TYPING_PAUSE, partial(self.on_typing_pause, terminal))

    def on_typing_pause(self, terminal: TerminalInput) -> None:
        """The rank did not read, or the launcher was in the background: the terminal has kept what was typed."""
        terminal.write()
        if terminal.pending or not terminal.is_ours():
            self.loop.set_timer("typed", TYPING_PAUSE, partial(self.on_typing_pause, terminal))
        elif not terminal.ended:
            self.loop.watch(0, partial(self.on_typed, terminal))

    # -- output

    def say(self, text: str) -> None:
        """The launcher's own words, on standard error."""
        self.printers[2].write("".join(f"ompyrun: {line}\n" for line in text.splitlines()).encode())

    def attach(self, process: Process) -> None:
        """Pass on what a rank writes from now on."""
        for descriptor, target, name in ((process.stdout, 1, "stdout"), (process.stderr, 2, "stderr")):
            if descriptor < 0:
                continue
            printer = self.printers[target] if self.output.passed_on[target - 1] else None
            own = self.file_of(process.rank, target - 1)
            self.streams[descriptor] = Lines(printer, self.output.tag.of(process.rank, name), own)
            if not self.held:
                self.loop.watch(descriptor, partial(self.on_output, descriptor))

    def file_of(self, rank: int, stream: int) -> Printer | None:
        """The file of a stream of a rank's; ranks whose pattern gives the same name share one.  OSError if it can't be made."""
        pattern = self.output.files[stream]
        if pattern is None:
            return None
        name = pattern.replace("%%", "\0").replace("%r", str(rank)).replace("%h", self.host).replace("\0", "%")
        if name not in self.files:
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            self.files[name] = Printer(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666))
        return self.files[name]

    def all_printers(self) -> list[Printer]:
        return [*self.printers.values(), *self.files.values()]

    def read_now(self, process: Process) -> None:
        """What a rank said last comes before what is said about it."""
        for descriptor in (process.stdout, process.stderr):
            self.on_output(descriptor)

    def on_output(self, descriptor: int) -> None:
        lines = self.streams.get(descriptor)
        if lines is None:
            return
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        if data:
            lines.feed(data)
            self.no_library = self.no_library or lines.shows(NO_LIBRARY, data)
            if lines.partial and lines.printer is not None and lines.printer.is_terminal:
                self.loop.set_timer(f"prompt {descriptor}", PROMPT_DELAY, lines.pass_partial)
            return
        lines.close()
        del self.streams[descriptor]
        self.loop.unwatch(descriptor)
        os.close(descriptor)

    def flush(self) -> OSError | None:
        """Write what can be written; while a reader is slow, the ranks' pipes fill instead of this memory.

        Returns why nothing can be written any more, if so.
        """
        for printer in self.all_printers():
            if printer.flush():
                self.loop.unwatch(printer.descriptor)
            else:
                self.loop.watch_writable(printer.descriptor)
        pending = self.pending()
        if not self.held and pending > HIGH:
            self.held = True
            for descriptor in self.streams:
                self.loop.unwatch(descriptor)
        elif self.held and pending < LOW:
            self.held = False
            for descriptor in self.streams:
                self.loop.watch(descriptor, partial(self.on_output, descriptor))
        return next((printer.problem for printer in self.all_printers() if printer.problem is not None), None)

    def pending(self) -> int:
        """Bytes that wait for a reader."""
        return sum(printer.pending for printer in self.all_printers())

    def drain(self, has_failed: bool) -> None:
        """All ranks have ended: pass on what is left in their pipes, and wait until it is out."""
        end = time.monotonic() + ESCAPED
        stalled, before = time.monotonic(), -1
        while self.streams or self.pending():
            self.flush()
            now = time.monotonic()
            if self.pending() != before:
                stalled, before = now, self.pending()
            if self.held:
                end = now + ESCAPED
            elif now > end:
                for lines in self.streams.values():
                    lines.close()
                self.streams.clear()
            if has_failed and now > stalled + PATIENCE:
                return
            if self.streams or self.pending():
                self.loop.turn(ESCAPED)
