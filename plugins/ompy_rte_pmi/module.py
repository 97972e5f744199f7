"""A job over PMI-1.

A PMI value is one word of at most 1024 characters, so bytes are published as base64 without padding, cut in pieces:

    key  "7.card.0" -> "3.<first piece>"      3 pieces in all
    key  "7.card.1" -> "<second piece>"
    key  "7.card.2" -> "<third piece>"
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64

from ompy.core.errors import ERR_INTERN, ERR_PROC_FAILED, ERR_SPAWN, MPIError
from ompy.core.progress import is_readable, serve_until_readable
from ompy.mca.last_words import say
from ompy.mca.pmi_services import ELSEWHERE_KEY, PARENT_KEY, PmiServices
from ompy.mca.pmi_wire import Wire, connect
from ompy.mca.rte import Rte

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from ompy.mca.rte import Order, Started

# Room for "<pieces>." and for a server that counts a terminating zero.
MARGIN = 24
SECRET_BYTES = 32
LONGEST_MESSAGE = 4000  # characters of an abort's; a server takes lines of 64 KiB
SECRET_KEY = "secret"
# What is believed of a server at most.
LONGEST_VALUE = 1 << 20
MOST_PIECES = 1 << 16
MOST_RANKS = 1 << 28
DIGITS = 9
UNKNOWN = "-1"  # Slurm's number of the program
# Jobs of ompy's own launcher: it has put the secret where ranks find it, and reads the message of an abort.
OWN_PREFIX = "ompy-"
GREETING = (
    ("init pmi_version=1 pmi_subversion=1", "response_to_init"),
    ("get_maxes", "maxes"),
    ("get_my_kvsname", "my_kvsname"),
)


def number(text: str, what: str, least: int, most: int) -> int:
    """A number that the server has sent; MPIError for anything else."""
    if not text.isdecimal() or len(text) > DIGITS or not least <= int(text) <= most:
        raise MPIError(
            ERR_INTERN, f"the PMI server says {text[:DIGITS]!r} of {what}, where a number from {least} to {most} was expected"
        )
    return int(text)


def decode(text: str) -> str:
    """Words that the server has sent in hexadecimal, since a PMI value has no spaces."""
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return "it can't be understood how"


class PmiRte(PmiServices, Rte):
    """This process's place in a job that a PMI-1 server started.

    Parameters:
        wire: open connection.
        rank, size, local_rank, local_size: of this process.
    """

    # Of Slurm, which says nothing where it could start nothing.
    srun_options: Sequence[str] = ()
    spawn_limit = 0  # seconds; 0: an answer always comes
    barrier = "barrier_in", "barrier_out"
    farewell = "finalize", "finalize_ack"

    def __init__(self, wire: Wire, rank: int, size: int, local_rank: int, local_size: int) -> None:
        self.wire = wire
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self.descriptor = wire.descriptor
        self.has_met = False
        board = os.environ.get("OMPY_BOARD_FD")
        self.is_own = board is not None
        self.uncommitted: list[tuple[str, str]] = []
        self._greet()
        self.secret = self._agree_on_secret()
        if os.environ.get("PMI_SPAWNED") == "1":
            self.parent_port = self._lookup(PARENT_KEY)
            self.parents_elsewhere = self._lookup(ELSEWHERE_KEY) == "yes"
        if self.is_own and board is not None:
            os.set_inheritable(int(board), False)
            from ompy.core.board import Board

            self.board = Board.attach(int(board), rank)

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        return super().spawn(self._as_started(orders), port)

    def _as_started(self, orders: Sequence[Order]) -> Sequence[Order]:
        if not self.srun_options:
            return orders
        from ompy_rte_pmi.slurm import for_srun

        return for_srun(orders, self.srun_options)

    def wait_for_start(self, descriptor: int) -> None:
        if not self.spawn_limit:
            serve_until_readable(descriptor)
            return
        serve_until_readable(descriptor, self.spawn_limit)
        if not is_readable(descriptor):
            self.wire.give_up()
            raise MPIError(
                ERR_SPAWN,
                f"Slurm has started nothing in {self.spawn_limit} s: srun's error output says why; where all processors are "
                f"taken, OMPY_MCA_rte_pmi_slurm_spawn='--overlap --overcommit' has the new processes share them",
            )

    def _greet(self) -> None:
        greeting = [*GREETING, ("hear_of_failures", "hears_of_failures")] if self.is_own else GREETING
        greeted, limits, space, *_ = self._ask(greeting)
        if greeted.get("rc") != "0":
            raise MPIError(ERR_INTERN, f"the PMI server refuses version 1.1: {greeted}; --mca rte_pmi_version 2 asks for 2.0")
        self.piece = number(limits.get("vallen_max", "1024"), "the longest value", MARGIN + 1, LONGEST_VALUE) - MARGIN
        self.job = space.get("kvsname", "")
        self.is_own = self.job.startswith(OWN_PREFIX)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> PmiRte:
        """Find the server as `PMI_FD` or `PMI_PORT` says."""
        told: dict[str, str] = {}
        if "PMI_FD" in environment:
            wire = Wire(int(environment["PMI_FD"]))
        else:
            wire, told = connect(environment["PMI_PORT"], environment.get("PMI_ID", "0"))
        rank = int(told.get("rank", environment.get("PMI_RANK", "0")))
        size = int(told.get("size", environment.get("PMI_SIZE", "1")))
        local_rank = environment.get("MPI_LOCALRANKID", environment.get("SLURM_LOCALID", "0"))
        # Slurm names the ranks of the node: 0,1,2
        local_size = environment.get("MPI_LOCALNRANKS", str(1 + environment.get("SLURM_GTIDS", "").count(",")))
        return cls(wire, rank, size, int(local_rank), int(local_size))

    @property
    def appnum(self) -> int:
        """Number of this process's program among those of the command line; asked for by the few that want to know."""
        told = self.wire.ask("get_appnum", "appnum").get("appnum", UNKNOWN)
        return 0 if told == UNKNOWN else number(told, "the program's number", 0, 1 << 20)

    def _ask(self, questions: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
        if self.is_own:
            return self.wire.ask_together(questions)
        return [self.wire.ask(*question) for question in questions]

    def _agree_on_secret(self) -> bytes:
        if self.is_own:
            return bytes.fromhex(self._lookup(SECRET_KEY))
        if self.rank == 0:
            self.put(SECRET_KEY, os.urandom(SECRET_BYTES))
        self.commit_and_fence()
        return self.get(0, SECRET_KEY)

    def _lookup(self, key: str) -> str:
        answer = self.wire.ask(f"get kvsname={self.job} key={key}", "get_result")
        if "how" in answer:
            how = f"the launcher says that its owner {decode(answer['how'])}"
            raise MPIError(ERR_PROC_FAILED, f"what was published under {key} in job {self.job} is lost: {how}")
        if answer.get("rc", "0") != "0" or "value" not in answer:
            raise MPIError(ERR_INTERN, f"nothing is published under {key} in job {self.job}")
        return answer["value"]

    def put(self, key: str, value: bytes) -> None:
        text = b2a_base64(value, newline=False).decode().rstrip("=")
        pieces = [text[i : i + self.piece] for i in range(0, len(text), self.piece)] or [""]
        pieces[0] = f"{len(pieces)}.{pieces[0]}"
        for number, piece in enumerate(pieces):
            self.uncommitted.append(self._store(f"{self.rank}.{key}.{number}", piece))

    def _store(self, key: str, value: str) -> tuple[str, str]:
        return f"put kvsname={self.job} key={key} value={value}", "put_result"

    def commit_and_fence(self) -> None:
        # The first fence is that of the initialisation, the second that of the finalisation.
        if self.board is not None:
            self.board.meet(self.has_met)
        if self.has_met:
            stored = self._ask(self.uncommitted)
            self.wire.ask(*self.barrier, serve_until_readable)
        else:
            *stored, _ = self._ask([*self.uncommitted, self.barrier])
        self.uncommitted.clear()
        for answer in stored:
            if answer.get("rc", "0") != "0":
                problem = f"the PMI server does not take what rank {self.rank} publishes: {answer.get('msg', answer)}"
                raise MPIError(ERR_INTERN, problem)
        if self.board is not None:
            self.board.met()
        self.has_met = True

    def get(self, rank: int, key: str) -> bytes:
        words, _, text = self._lookup(f"{rank}.{key}.0").partition(".")
        pieces = number(words, f"the pieces of {key} of rank {rank}", 1, MOST_PIECES)
        text += "".join(self._lookup(f"{rank}.{key}.{piece}") for piece in range(1, pieces))
        try:
            return a2b_base64(text + "=" * (-len(text) % 4))
        except ValueError as error:
            raise MPIError(ERR_INTERN, f"what rank {rank} has published under {key} can't be read: {error}") from None

    def listen(self) -> list[tuple[str, int, str]]:
        told = [fields for fields in self.wire.listen() if fields.get("cmd") == "process_failed"]
        return [(fields.get("job", ""), self._failed(fields), decode(fields.get("how", ""))) for fields in told]

    def _failed(self, fields: Mapping[str, str]) -> int:
        most = self.size - 1 if fields.get("job") == self.job else MOST_RANKS
        return number(fields.get("rank", ""), "a rank that has failed", 0, most)

    def tell_connected(self, jobs: Sequence[str]) -> None:
        if self.is_own and self.parent_port:
            self.wire.ask(f"connected jobs={','.join(jobs)}", "connected_result")

    def abort(self, code: int, message: str) -> NoReturn:
        try:
            say(f"ompy: rank {self.rank}: {message}\n" if message and not self.is_own else "")
            self.wire.tell(self._last_command(code, message))
        finally:
            os._exit(code & 0xFF or 1 if code else 0)

    def _last_command(self, code: int, message: str) -> str:
        words = f" message={message[:LONGEST_MESSAGE].encode('utf-8', 'backslashreplace').hex()}" if self.is_own else ""
        return f"abort exitcode={code}{words}"

    def outlive_launcher(self) -> NoReturn:
        try:
            say(f"ompy: rank {self.rank}: the launcher has gone, ending\n")
        finally:
            os._exit(1)

    def leave_to_parent(self) -> None:
        self.wire.close()
        self.descriptor = -1

    def finalize(self) -> None:
        if self.wire.descriptor >= 0:
            if self.board is not None:
                self.board.leave()
            self.wire.ask(*self.farewell)
            self.wire.close()
            self.descriptor = -1
