"""Standard streams between the ranks and the person: output of all, input for one."""

from __future__ import annotations

import errno
import os
from functools import partial

from ompy.runtime.output import Lines, Printer
from ompy.runtime.shared_input import SharedInput
from ompy.runtime.streams import Stream, Streams
from ompy.runtime.terminal import TerminalInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.runtime.job import Job
    from ompy.runtime.loop import Loop

# A prompt without a newline shows after this silence, in seconds.
PROMPT_DELAY = 0.1
TYPING_PAUSE = 0.1
# What a rank says that has no MPI, and what stands in for it.
NO_MPI = {
    b"RuntimeError: cannot load MPI library": "has no MPI library here",
    b"ModuleNotFoundError: No module named 'mpi4py'": "is not installed here",
}
IGNORED = (
    "the program does not look at PYTHONPATH, by which --mpi4py gives it ompy, as under `python -I` and `-E`: "
    "`ompy activate` does without"
)


class Forwarder(Streams):
    """The launcher's own streams, and those of its ranks.

    Parameters:
        loop: watches the descriptors.
        job: says who reads standard input, and what becomes of what the ranks write.

    Attributes:
        hint: what may help a rank that has found no MPI; empty for none.
    """

    def __init__(self, loop: Loop, job: Job) -> None:
        super().__init__(loop)
        self.stdin = job.stdin
        self.output = job.output
        self.printers = {1: Printer(1), 2: Printer(2)}
        self.lines: dict[Stream, Lines] = {}
        self.files: dict[str, Printer] = {}
        self.gives_mpi4py = job.gives_mpi4py
        self.hint = ""
        self.shared = SharedInput(loop) if self.stdin == job.EVERY_RANK else None
        is_typed = self.stdin is not None and self.shared is None and TerminalInput.is_needed()
        self.terminal = TerminalInput() if is_typed else None

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
        lines = "".join(f"ompyrun: {line}\n" for line in text.splitlines())
        self.printers[2].write(lines.encode("utf-8", "backslashreplace"))

    def expect(self, job: int, rank: int, host: str) -> None:
        """Be ready for what a rank is going to write.  OSError, with the file's name, when its files can't be made."""
        for target, name in ((1, "stdout"), (2, "stderr")):
            if target == 2 and self.output.merged:
                continue
            printer = self.printers[target] if self.output.passed_on[target - 1] else None
            own = self.file_of(job, rank, host, target - 1)
            self.lines[job, rank, target] = Lines(printer, self.output.tag.of(job, rank, name), own)

    def file_of(self, job: int, rank: int, host: str, stream: int) -> Printer | None:
        """The file of a stream of a rank's; ranks whose pattern gives the same name share one."""
        pattern = self.output.files[stream]
        if pattern is None:
            return None
        words = {"%r": str(rank), "%j": str(job + 1), "%h": host}
        name = pattern.replace("%%", "\0")
        for sign, word in words.items():
            name = name.replace(sign, word)
        name = name.replace("\0", "%")
        if name not in self.files:
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            # A named pipe that nobody reads is an error, and nothing to wait for.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            try:
                self.files[name] = Printer(os.open(name, flags, 0o666))
            except OSError as error:
                if error.errno == errno.ENXIO:
                    error.strerror = "nobody reads what is a pipe there"
                raise
        return self.files[name]

    def took(self, stream: Stream, data: bytes) -> None:
        lines = self.lines.get(stream)
        if lines is None:
            return
        lines.feed(data)
        if shown := lines.shows(NO_MPI, data):
            lacking = f"the program imports mpi4py, which {NO_MPI[shown]}: with --mpi4py it receives ompy"
            self.hint = IGNORED if self.gives_mpi4py else lacking
        if lines.partial and lines.printer is not None and lines.printer.is_terminal:
            self.loop.set_timer(f"prompt {stream}", PROMPT_DELAY, lines.pass_partial)

    def ended(self, stream: Stream) -> None:
        lines = self.lines.pop(stream, None)
        if lines is not None:
            lines.close()

    def all_printers(self) -> list[Printer]:
        return [*self.printers.values(), *self.files.values()]

    def write_out(self) -> None:
        for printer in self.all_printers():
            if printer.flush():
                self.loop.unwatch(printer.descriptor)
            else:
                self.loop.watch_writable(printer.descriptor)

    def problem(self) -> OSError | None:
        """Why nothing can be written any more, if so."""
        return next((printer.problem for printer in self.all_printers() if printer.problem is not None), None)

    def pending(self) -> int:
        return sum(printer.pending for printer in self.all_printers())
