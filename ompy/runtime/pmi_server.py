"""The launcher's side of PMI-1: what ranks ask of whoever started them.

    rank                                launcher
      |  cmd=init pmi_version=1 ...  ->   |
      |  <- cmd=response_to_init rc=0 ... |
      |  cmd=put kvsname=J key=K value=V  |   business cards into the job's key-value space
      |  cmd=barrier_in               ->  |   answered when every rank of the job has asked
      |  <- cmd=barrier_out               |
      |  cmd=get kvsname=J key=K      ->  |   a peer's card, at first contact; where that is lost, how its owner has failed
      |  cmd=hear_of_failures         ->  |   ompy's ranks alone: from here on the rank takes, unasked,
      |  <- cmd=process_failed job=J ...  |   which others have failed in a job that goes on, its own or one beside it
      |  mcmd=spawn ... endcmd        ->  |   answered when the processes have all come to a barrier, or one can't
      |  cmd=spawn_cancel port=P      ->  |   ompy's ranks alone, unanswered: P's owner waits for no processes any more
      |  cmd=connected jobs=J,K       ->  |   ompy's ranks alone: the other jobs whose failure is this one's too
      |  cmd=finalize                 ->  |   from here on the rank may exit

One line a command, `name=value` fields without spaces; `spawn` has a block for each program, a field a line.
Any PMI-1 client is served, an ompy rank or another library's.
What is no such conversation, two processes of one rank that both speak among it, is a ValueError: it ends the job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

KEY_LIMIT = 64
VALUE_LIMIT = 1024
CANCEL = "spawn_cancel"
LINE_LIMIT = 64 * 1024
BLOCK_LIMIT = 64 * 1024
EXIT_CODES = 1 << 31

Then = Callable[["str | None"], None]


class Member:
    """Who comes to a barrier: one rank, or a host for all of its ranks.

    Attributes:
        ranks: those that it stands for.
    """

    ranks: Sequence[int] = ()

    def release(self) -> None:
        """All have come."""
        raise NotImplementedError


class KeyValueSpace:
    """What the processes of one job have published, and their barrier.

    Parameters:
        name: the job's name, which clients get by `get_my_kvsname`.
        size: number of processes in the job.
    """

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size
        self.values: dict[str, str] = {}
        self.services: dict[str, str] = {}
        self.waiting: list[Member] = []
        self.failed: dict[int, str] = {}
        self.hearers: list[Session] = []
        self.awaited: dict[str, list[Then]] = {}

    # -- for those who hold the values of some ranks only

    def fetch(self, key: str) -> bool:
        """Ask whoever may hold a value that is not here; `arrived` is then called.  False when there is nobody to ask."""
        return False

    def concerns_others(self, rank: int, command: str, fields: dict[str, str]) -> bool:
        """Whether a command is to be answered by the launcher of the whole job, who then gets the line by `forward`."""
        return False

    def forward(self, session: Session, line: str) -> None:
        """Hand on a command; `session.answered` is called with the answer."""
        raise NotImplementedError

    # -- for those who start processes

    @property
    def universe_size(self) -> int:
        """How many processes there is room for."""
        return self.size

    def spawn(self, session: Session, text: str) -> None:
        """Start what the blocks say; `session.answered` is then called with the answer."""
        session.answered(refusal("this launcher starts no further processes"))

    def cancel_spawn(self, session: Session, line: str) -> None:
        """Whoever has asked for processes waits for them no more."""

    def connect(self, rank: int, jobs: set[str]) -> None:
        """The jobs that a process is connected with have changed."""

    # --

    def enter_barrier(self, member: Member) -> None:
        """Let everyone go when the last one has come."""
        if member in self.waiting:
            raise ValueError(f"rank {member.ranks[0]} came twice to one PMI barrier")
        self.waiting.append(member)
        self.look_who_waits()

    def look_who_waits(self) -> None:
        if self.waiting and len({*self.waiting_ranks, *self.failed}) == self.size:
            self.release()

    def fail(self, job: str, rank: int, how: str) -> None:
        """A process has ended without leaving its job, where the others go on: who hears of it is told, nobody waits for it.

        Parameters:
            job: its job's name, this one's or that of another one of the launcher's.
        """
        if job == self.name:
            self.failed[rank] = how
        for session in self.hearers:
            session.tell_of_failure(job, rank, how)
        self.look_who_waits()

    def lose(self, rank: int) -> None:
        """What a rank has published is lost with its host: who waits for it is told that it is not there."""
        for key in [key for key in self.awaited if key.startswith(f"{rank}.")]:
            self.arrived(key, None)

    @property
    def waiting_ranks(self) -> list[int]:
        """Who has come to the barrier."""
        return [rank for member in self.waiting for rank in member.ranks]

    def release(self) -> None:
        released, self.waiting = self.waiting, []
        for member in released:
            member.release()

    def get(self, key: str, then: Then) -> None:
        """Have `then` called with the value, or None, perhaps later."""
        if key in self.values:
            then(self.values[key])
        elif key in self.awaited:
            self.awaited[key].append(then)
        elif self.fetch(key):
            self.awaited[key] = [then]
        else:
            then(None)

    def arrived(self, key: str, value: str | None) -> None:
        """What was asked for by `fetch` is here; what was published never changes, so it is asked for once."""
        if value is not None:
            self.values[key] = value
        for then in self.awaited.pop(key, []):
            then(value)


def refusal(reason: str) -> str:
    """The answer to a `spawn` that has started nothing."""
    return f"cmd=spawn_result rc=-1 message={reason.encode('utf-8', 'backslashreplace').hex()}"


class Session(Member):
    """One process's conversation.

    Parameters:
        space: the job's key-value space.
        rank: of the process, in its job.
        program: number of the program among those separated by `:` on the command line.
        send: takes bytes for the process.
        tell: takes those that it has not asked for, and need not read soon; None: `send` does.
    """

    def __init__(
        self,
        space: KeyValueSpace,
        rank: int,
        program: int,
        send: Callable[[bytes], None],
        tell: Callable[[bytes], None] | None = None,
    ) -> None:
        self.space = space
        self.rank = rank
        self.ranks = (rank,)
        self.program = program
        self.send = send
        self.tell = tell or send
        self.initialised = False
        self.finalised = False
        self.aborted: tuple[int, str] | None = None
        self.partial = b""
        # The lines of a command that has several, until its last one has come.
        self.block: list[str] = []
        # A command waits for an answer from elsewhere; those behind it wait for their turn.
        self.is_waiting = False
        self.behind: list[str] = []

    def reply(self, line: str) -> None:
        self.send(line.encode("utf-8", "surrogateescape") + b"\n")

    def receive(self, data: bytes) -> None:
        """Take what has arrived; raises `ValueError` on words that are not PMI-1."""
        *lines, self.partial = (self.partial + data).split(b"\n")
        if len(self.partial) > LINE_LIMIT:
            raise ValueError(f"a PMI command of rank {self.rank} is longer than {LINE_LIMIT} bytes")
        for line in lines:
            if self.block or line.startswith(b"mcmd="):
                self.gather(line.decode("utf-8", "surrogateescape"))
            elif line:
                self.obey(line.decode("ascii", "replace"))

    def gather(self, line: str) -> None:
        """A line of a request that has several: a block for each program, of which each says how many there are."""
        self.block.append(line)
        if len(self.block) > BLOCK_LIMIT:
            raise ValueError(f"a PMI command of rank {self.rank} has more than {BLOCK_LIMIT} lines")
        if line == "endcmd":
            said = dict(line.partition("=")[::2] for line in self.block)
            if said.get("totspawns", "1") == said.get("spawnssofar", "1"):
                text, self.block = "\n".join(self.block), []
                self.obey(text)

    def release(self) -> None:
        self.reply("cmd=barrier_out")

    def answered(self, line: str) -> None:
        """The answer to a command that was handed on."""
        self.is_waiting = False
        self.reply(line)
        while self.behind and not self.is_waiting:
            self.obey(self.behind.pop(0))

    def obey(self, line: str) -> None:
        if line.startswith(f"cmd={CANCEL} "):
            self.space.cancel_spawn(self, line)
            return
        if self.is_waiting:
            self.behind.append(line)
            return
        fields = dict(field.partition("=")[::2] for field in line.partition("\n")[0].split())
        command = fields.get("cmd") or fields.get("mcmd", "")
        handler = COMMANDS.get(command)
        if handler is None and command != "spawn":
            raise ValueError(f"rank {self.rank} sent the PMI command {command or line!r}, which this launcher does not know")
        if self.space.concerns_others(self.rank, command, fields):
            self.is_waiting = True
            self.space.forward(self, line)
        elif handler is None:
            self.is_waiting = True
            self.space.spawn(self, line)
        else:
            handler(self, fields)

    def init(self, fields: dict[str, str]) -> None:
        if self.initialised:
            raise ValueError(
                f"a second process of rank {self.rank} initialises MPI: a rank is one process. "
                f"Start as many ranks as there are to be processes, and only one program in each"
            )
        self.initialised = True
        rc = 0 if fields.get("pmi_version") == "1" else -1
        self.reply(f"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc={rc}")

    def hear_of_failures(self, fields: dict[str, str]) -> None:
        self.reply("cmd=hears_of_failures rc=0")
        self.space.hearers.append(self)
        for rank, how in self.space.failed.items():
            self.tell_of_failure(self.space.name, rank, how)

    def tell_of_failure(self, job: str, rank: int, how: str) -> None:
        self.tell(f"cmd=process_failed job={job} rank={rank} how={how.encode().hex()}\n".encode())

    def get_maxes(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=maxes kvsname_max=256 keylen_max={KEY_LIMIT} vallen_max={VALUE_LIMIT}")

    def get_appnum(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=appnum appnum={self.program}")

    def get_my_kvsname(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=my_kvsname kvsname={self.space.name}")

    def get_universe_size(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=universe_size size={self.space.universe_size}")

    def put(self, fields: dict[str, str]) -> None:
        key, value = fields.get("key", ""), fields.get("value", "")
        if not key or len(key) > KEY_LIMIT or len(value) > VALUE_LIMIT:
            self.reply(f"cmd=put_result rc=-1 msg=at_most_{KEY_LIMIT}_and_{VALUE_LIMIT}_bytes")
        elif key in self.space.values:
            self.reply("cmd=put_result rc=-1 msg=key_is_taken")
        else:
            self.space.values[key] = value
            self.reply("cmd=put_result rc=0 msg=success")

    def get(self, fields: dict[str, str]) -> None:
        key = fields.get("key", "")
        self.is_waiting = True

        def then(value: str | None) -> None:
            found = f"rc=-1 msg=key_{key}_not_found" if value is None else f"rc=0 msg=success value={value}"
            failed = (how for rank, how in self.space.failed.items() if key.startswith(f"{rank}."))
            if value is None and (how := next(failed, None)) is not None:
                found += f" how={how.encode().hex()}"
            self.answered("cmd=get_result " + found)

        self.space.get(key, then)

    def barrier_in(self, fields: dict[str, str]) -> None:
        self.space.enter_barrier(self)

    def connected(self, fields: dict[str, str]) -> None:
        self.space.connect(self.rank, set(filter(None, fields.get("jobs", "").split(","))))
        self.reply("cmd=connected_result rc=0")

    def publish_name(self, fields: dict[str, str]) -> None:
        service = fields.get("service", "")
        if service in self.space.services:
            self.reply(f"cmd=publish_result rc=-1 info=service_{service}_is_published_already")
            return
        self.space.services[service] = fields.get("port", "")
        self.reply("cmd=publish_result rc=0 info=ok")

    def lookup_name(self, fields: dict[str, str]) -> None:
        port = self.space.services.get(fields.get("service", ""))
        self.reply("cmd=lookup_result " + ("rc=-1 info=unknown_service" if port is None else f"rc=0 info=ok port={port}"))

    def unpublish_name(self, fields: dict[str, str]) -> None:
        known = self.space.services.pop(fields.get("service", ""), None) is not None
        self.reply("cmd=unpublish_result " + ("rc=0 info=ok" if known else "rc=-1 info=unknown_service"))

    def abort(self, fields: dict[str, str]) -> None:
        # Our own clients say why; hexadecimal, because a PMI value holds no space.
        try:
            code = int(fields.get("exitcode", "1"))
            message = bytes.fromhex(fields.get("message", "")).decode("utf-8", "replace")
        except ValueError:
            code, message = 1, "the rest of what it said can't be understood"
        self.aborted = (code if -EXIT_CODES <= code < EXIT_CODES else 1, message)

    def finalize(self, fields: dict[str, str]) -> None:
        self.finalised = True
        if self in self.space.hearers:
            self.space.hearers.remove(self)
        self.reply("cmd=finalize_ack")


COMMANDS = {
    "init": Session.init,
    "hear_of_failures": Session.hear_of_failures,
    "get_maxes": Session.get_maxes,
    "get_appnum": Session.get_appnum,
    "get_my_kvsname": Session.get_my_kvsname,
    "get_universe_size": Session.get_universe_size,
    "put": Session.put,
    "get": Session.get,
    "barrier_in": Session.barrier_in,
    "connected": Session.connected,
    "publish_name": Session.publish_name,
    "lookup_name": Session.lookup_name,
    "unpublish_name": Session.unpublish_name,
    "abort": Session.abort,
    "finalize": Session.finalize,
}
