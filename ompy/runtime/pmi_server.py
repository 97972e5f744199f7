"""The launcher's side of PMI-1: what ranks ask of whoever started them.

    rank                                launcher
      |  cmd=init pmi_version=1 ...  ->   |
      |  <- cmd=response_to_init rc=0 ... |
      |  cmd=put kvsname=J key=K value=V  |   business cards into the job's key-value space
      |  cmd=barrier_in               ->  |   answered when every rank of the job has asked
      |  <- cmd=barrier_out               |
      |  cmd=get kvsname=J key=K      ->  |   a peer's card, at first contact
      |  cmd=finalize                 ->  |   from here on the rank may exit

One line a command, `name=value` fields without spaces.  Any PMI-1 client is served, an ompy rank or another library's.
What is no such conversation, two processes of one rank that both speak among it, is a ValueError: it ends the job.
"""

from __future__ import annotations

from collections.abc import Callable

KEY_LIMIT = 64
VALUE_LIMIT = 1024
LINE_LIMIT = 64 * 1024
EXIT_CODES = 1 << 31


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
        self.waiting: list[Session] = []

    def enter_barrier(self, session: Session) -> None:
        """Let everyone go when the last one has come."""
        if session in self.waiting:
            raise ValueError(f"rank {session.rank} came twice to one PMI barrier")
        self.waiting.append(session)
        if len(self.waiting) == self.size:
            released, self.waiting = self.waiting, []
            for member in released:
                member.reply("cmd=barrier_out")


class Session:
    """One process's conversation.

    Parameters:
        space: the job's key-value space.
        rank: of the process, in its job.
        program: number of the program among those separated by `:` on the command line.
        send: takes bytes for the process.
    """

    def __init__(self, space: KeyValueSpace, rank: int, program: int, send: Callable[[bytes], None]) -> None:
        self.space = space
        self.rank = rank
        self.program = program
        self.send = send
        self.initialised = False
        self.finalised = False
        self.aborted: tuple[int, str] | None = None
        self.partial = b""

    def reply(self, line: str) -> None:
        self.send(line.encode() + b"\n")

    def receive(self, data: bytes) -> None:
        """Take what has arrived; raises `ValueError` on words that are not PMI-1."""
        *lines, self.partial = (self.partial + data).split(b"\n")
        if len(self.partial) > LINE_LIMIT:
            raise ValueError(f"a PMI command of rank {self.rank} is longer than {LINE_LIMIT} bytes")
        for line in lines:
            if line:
                self.obey(line.decode("ascii", "replace"))

    def obey(self, line: str) -> None:
        fields = dict(field.partition("=")[::2] for field in line.split())
        command = fields.get("cmd") or fields.get("mcmd", "")
        handler = COMMANDS.get(command)
        if handler is None:
            raise ValueError(f"rank {self.rank} sent the PMI command {command or line!r}, which this launcher does not know")
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

    def get_maxes(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=maxes kvsname_max=256 keylen_max={KEY_LIMIT} vallen_max={VALUE_LIMIT}")

    def get_appnum(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=appnum appnum={self.program}")

    def get_my_kvsname(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=my_kvsname kvsname={self.space.name}")

    def get_universe_size(self, fields: dict[str, str]) -> None:
        self.reply(f"cmd=universe_size size={self.space.size}")

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
        value = self.space.values.get(key)
        found = f"rc=-1 msg=key_{key}_not_found" if value is None else f"rc=0 msg=success value={value}"
        self.reply("cmd=get_result " + found)

    def barrier_in(self, fields: dict[str, str]) -> None:
        self.space.enter_barrier(self)

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
        self.reply("cmd=finalize_ack")


COMMANDS = {
    "init": Session.init,
    "get_maxes": Session.get_maxes,
    "get_appnum": Session.get_appnum,
    "get_my_kvsname": Session.get_my_kvsname,
    "get_universe_size": Session.get_universe_size,
    "put": Session.put,
    "get": Session.get,
    "barrier_in": Session.barrier_in,
    "publish_name": Session.publish_name,
    "lookup_name": Session.lookup_name,
    "unpublish_name": Session.unpublish_name,
    "abort": Session.abort,
    "finalize": Session.finalize,
}
