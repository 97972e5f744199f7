# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""PMI-1 as a client speaks it: a line out, a line back.  PMI-2: as much, behind its length, and with semicolons.

    PMI-1   cmd=get kvsname=1.0 key=0.card.0\\n
    PMI-2   "    27" cmd=kvs-get;key=0.card.0;      the length in 6 characters; only the first greeting is as in PMI-1

Compiled, because a signal's handler runs between any two steps of the interpreter's, and may raise: here it does so in a system
call that waits, when nothing is half done.
"""
import os
from _thread import allocate_lock, get_ident

from ompy.core.errors import ERR_ARG, ERR_INTERN, ERR_OTHER, MPIError
from ompy.core.progress import is_readable

LONGEST_LINE = 4 << 20
# What ompy's launcher says unasked, to ranks that have said that they hear it.
UNASKED = "cmd=process_failed "


def fields_of(line: str) -> dict[str, str]:
    return dict(field.partition("=")[::2] for field in line.split())


class Wire:
    """A connection to the PMI server.

    A signal's handler may raise while this rank waits for an answer: it is read, and left aside, before the next question.

    Parameters:
        descriptor: a stream socket or pipe, both ways.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.process = os.getpid()
        # It stands for this process's rank: a program that is started from here is none.
        os.set_inheritable(descriptor, False)
        self.partial = b""
        self.due = 0  # answers
        self.expected = ""  # command of the answer that is awaited
        self.late: list[str] = []  # commands of answers that nobody waits for any more, if they come at all
        self.unasked: list[dict[str, str]] = []
        self.lock = allocate_lock()
        self.asker = 0  # the thread that has it

    def ask(self, command: str, expected: str, wait=None) -> dict[str, str]:
        """Send `cmd=<command>` and return the fields of the answer, for which `wait(descriptor)` waits if it is given.

        Servers differ in the fields beside `cmd` (`info`, `msg`, `rc`), so only the command word is checked.
        Raises MPIError when the server has gone or answers something else.
        """
        return self.request(self.framed(command), expected, wait)

    def request(self, text: str, expected: str, wait=None) -> dict[str, str]:
        """As `ask`, of lines as they are."""
        self.begin(expected)
        try:
            self.put(text, 1, wait)
            return self.answer(text, expected, wait)
        finally:
            self.end()

    def ask_together(self, questions) -> list[dict[str, str]]:
        """As `ask` for each (command, expected), in one round trip: for servers that read ahead, as ompy's own does.

        On a busy machine each round trip waits for the launcher's turn, and then for this rank's.
        """
        self.begin(questions[0][1] if questions else "")
        try:
            if questions:
                self.put("".join(self.framed(command) for command, _ in questions), len(questions))
            return [self.answer(command, expected) for command, expected in questions]
        finally:
            self.end()

    def begin(self, expected: str) -> None:
        """One question at a time: threads wait for one another, and what this one calls in a wait of its own is refused."""
        if self.asker == get_ident():
            raise MPIError(
                ERR_OTHER,
                f"the launcher owes this thread an answer ({self.expected}) still: a signal handler can't ask for another one "
                f"({expected}) meanwhile",
            )
        self.lock.acquire()
        self.asker = get_ident()

    def end(self) -> None:
        self.asker = 0
        self.lock.release()

    def put(self, text: str, answers: int, wait=None) -> None:
        """Lines to which there will be so many answers."""
        while self.due:
            self.next_line(wait)
        self.say(text, answers)

    def answer(self, command: str, expected: str, wait=None) -> dict[str, str]:
        self.expected = expected
        while True:
            line = self.next_line(wait)
            fields = self.fields(line)
            if fields.get("cmd") == expected or fields.get("cmd") not in self.late:
                break
            self.late.remove(fields["cmd"])
        if fields.get("cmd") != expected:
            raise MPIError(ERR_INTERN, f"the PMI server answered {line!r} to {command.split()[0]!r}, expected cmd={expected}")
        return fields

    def give_up(self) -> None:
        """Who waits for an answer waits no more; should it come, it is passed over.  Called in `wait`, which then raises."""
        self.due = 0
        self.late.append(self.expected)

    def tell(self, command: str) -> None:
        """What is not answered."""
        self.say(self.framed(command), 0)

    def framed(self, command: str) -> str:
        return f"cmd={command}\n"

    def fields(self, line: str) -> dict[str, str]:
        return fields_of(line)

    def say(self, text: str, answers: int) -> None:
        data = text.encode("utf-8", "surrogateescape")
        if os.getpid() != self.process:
            raise MPIError(ERR_INTERN, f"this process is a child of the rank (process {self.process}) that speaks PMI here")
        try:
            while data:
                data = data[os.write(self.descriptor, data) :]
        except OSError as error:
            raise MPIError(ERR_INTERN, f"the launcher has gone: {error.strerror} while sending a PMI command") from error
        self.due += answers

    def next_line(self, wait=None) -> str:
        """The next of what was asked for."""
        while (line := self.take_line()) is None:
            if wait is not None:
                wait(self.descriptor)
            self.read()
        return line

    def take_line(self) -> str | None:
        while b"\n" in self.partial:
            data, _, self.partial = self.partial.partition(b"\n")
            line = data.decode("ascii", "replace")
            if not line.startswith(UNASKED):
                self.due = max(0, self.due - 1)
                return line
            self.unasked.append(fields_of(line))
        return None

    def read(self) -> None:
        try:
            data = os.read(self.descriptor, 4096)
        except OSError as error:
            raise MPIError(ERR_INTERN, f"the launcher has gone: {error.strerror} while waiting for PMI") from error
        if not data:
            raise MPIError(ERR_INTERN, "the launcher has gone: end of file from the PMI server")
        self.partial += data
        if len(self.partial) > LONGEST_LINE:
            raise MPIError(ERR_INTERN, f"the PMI server sent more than {LONGEST_LINE} bytes without an end of line")

    def listen(self) -> list[dict[str, str]]:
        """The fields of what the server has said unasked, without waiting; raises EOFError when it has gone."""
        if not self.lock.acquire(blocking=False):
            # Who has asked reads, this thread or another, and puts aside what is not the answer.
            told, self.unasked = self.unasked, []
            return told
        try:
            if is_readable(self.descriptor):
                try:
                    data = os.read(self.descriptor, 4096)
                except OSError:
                    data = b""
                if not data:
                    raise EOFError
                self.partial += data
            # Also what came behind an answer, in one piece with it.
            while self.take_line() is not None:
                pass
            told, self.unasked = self.unasked, []
            return told
        finally:
            self.lock.release()

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


LENGTH = 6  # characters of it before each message of PMI-2


class SecondWire(Wire):
    """A connection to a PMI server that was greeted as one of PMI-2."""

    def framed(self, command: str) -> str:
        text = f"cmd={command};"
        length = len(text.encode("utf-8", "surrogateescape"))
        if length >= 10**LENGTH:
            raise MPIError(ERR_ARG, f"PMI-2 takes commands of less than {10**LENGTH} bytes; this one has {length}")
        return f"{length:{LENGTH}d}{text}"

    def fields(self, line: str) -> dict[str, str]:
        return dict(field.partition("=")[::2] for field in line.split(";") if field)

    def take_line(self) -> str | None:
        if len(self.partial) < LENGTH:
            return None
        digits = self.partial[:LENGTH].strip()
        if not digits.isdigit():
            raise MPIError(ERR_INTERN, f"the PMI server sent {self.partial[:LENGTH]!r}, where a length was expected")
        end = LENGTH + int(digits)
        if len(self.partial) < end:
            return None
        data, self.partial = self.partial[LENGTH:end], self.partial[end:]
        self.due = max(0, self.due - 1)
        return data.decode("ascii", "replace")


def connect(address: str, identifier: str) -> tuple[Wire, dict[str, str]]:
    """A wire to `PMI_PORT`, and what the server said to the greeting (rank and size come this way, not by variables)."""
    import socket  # only servers on a port need it: the import takes longer than the whole conversation

    host, _, port = address.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), timeout=30)
    except (OSError, ValueError) as error:
        raise MPIError(ERR_INTERN, f"no PMI server at PMI_PORT={address}: {error}") from error
    connection.settimeout(None)
    wire = Wire(connection.detach())
    told = wire.ask(f"initack pmiid={identifier}", "initack")
    for _ in range(3):
        told |= fields_of(wire.next_line().removeprefix("cmd=set "))
    return wire, told
