"""A job over PMI-2: other words for what PMI-1 does, and Slurm's `--mpi=pmi2` by its own name."""

from __future__ import annotations

import os

from ompy.core.errors import ERR_ARG, ERR_INTERN, ERR_SPAWN, SUCCESS, MPIError
from ompy.mca.pmi_services import ELSEWHERE_KEY, PARENT_KEY, escaped
from ompy.mca.pmi_wire import SecondWire
from ompy.mca.rte import Started
from ompy_rte_pmi.module import MARGIN, UNKNOWN, PmiRte, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.mca.rte import Order

LONGEST_VALUE = 1024  # PMI2_MAX_VALLEN
LONGEST_MESSAGE = 500
MOST_RANKS = 1 << 28


def word(text: str) -> str:
    """What stands between two semicolons; ERR_ARG for what can't."""
    if any(sign in text for sign in ";\n\0"):
        raise MPIError(ERR_ARG, f"{text!r}: PMI-2 takes no semicolons, line ends and zero bytes in it")
    return text


class Pmi2Rte(PmiRte):
    """This process's place in a job that a PMI-2 server started."""

    barrier = "kvs-fence", "kvs-fence-response"
    farewell = "finalize", "finalize-response"

    def _greet(self) -> None:
        greeted = self.wire.ask("init pmi_version=2 pmi_subversion=0", "response_to_init")
        if greeted.get("rc") != "0" or greeted.get("pmi_version") != "2":
            raise MPIError(ERR_INTERN, f"the PMI server refuses version 2.0: {greeted}; --mca rte_pmi_version 1 asks for 1.1")
        self.wire = SecondWire(self.wire.descriptor)
        job = os.environ.get("PMI_JOBID", "0")
        told = self.wire.ask(f"fullinit;pmijobid={job};pmirank={self.rank};threaded=FALSE", "fullinit-response")
        if told.get("rc") != "0":
            raise MPIError(ERR_INTERN, f"the PMI server does not let this process in: {told}")
        self.size = number(told.get("size", ""), "the number of ranks", 1, MOST_RANKS)
        self.rank = number(told.get("rank", ""), "this process's rank", 0, self.size - 1)
        self.program = told.get("appnum", UNKNOWN)
        self.piece = LONGEST_VALUE - MARGIN
        self.job = self.wire.ask("job-getid", "job-getid-response").get("jobid", job)
        self.is_own = False

    @property
    def appnum(self) -> int:
        """Number of this process's program; Slurm does not know it."""
        return 0 if self.program == UNKNOWN else number(self.program, "the program's number", 0, 1 << 20)

    @property
    def universe_size(self) -> int:
        found = self.wire.ask("info-getjobattr;key=universeSize", "info-getjobattr-response").get("value", "")
        return max(self.size, int(found)) if found.isdecimal() and len(found) < 10 else self.size

    def _store(self, key: str, value: str) -> tuple[str, str]:
        return f"kvs-put;key={key};value={value}", "kvs-put-response"

    def _lookup(self, key: str) -> str:
        answer = self.wire.ask(f"kvs-get;jobid={self.job};srcid=-1;key={key}", "kvs-get-response")
        if answer.get("rc", "0") != "0" or answer.get("found") != "TRUE" or "value" not in answer:
            raise MPIError(ERR_INTERN, f"nothing is published under {key} in job {self.job}")
        return answer["value"]

    def _last_command(self, code: int, message: str) -> str:
        words = message.encode("ascii", "replace").decode()[:LONGEST_MESSAGE]
        return f"abort;isworld=TRUE;exitcode={code};msg={''.join(' ' if sign in ';=' else sign for sign in words)}"

    # -- other processes

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        values = {PARENT_KEY: port, ELSEWHERE_KEY: "no" if self.is_on_one_host else "yes"}
        orders = self._as_started(orders)
        words = ["spawn", f"ncmds={len(orders)}", f"preputcount={len(values)}"]
        for place, (key, value) in enumerate(values.items()):
            words += [f"ppkey{place}={key}", f"ppval{place}={word(value)}"]
        for order in orders:
            words += [f"subcmd={word(order.command)}", f"maxprocs={order.count}", f"argc={len(order.arguments)}"]
            words += [f"argv{place}={word(argument)}" for place, argument in enumerate(order.arguments)]
            hints = [(key, value) for key, value in order.info.items() if value]
            words += [f"infokeycount={len(hints)}"]
            for place, (key, value) in enumerate(hints):
                words += [f"infokey{place}={word(key)}", f"infoval{place}={word(value)}"]
        answer = self.wire.ask(";".join(words), "spawn-response", self.wait_for_start)
        if answer.get("rc", "0") != "0":
            raise MPIError(ERR_SPAWN, f"the launcher has started nothing: {answer.get('errmsg', answer)}")
        return Started(answer.get("jobid", ""), [SUCCESS] * sum(order.count for order in orders))

    def publish(self, service: str, port: str) -> bool:
        answer = self.wire.ask(
            f"name-publish;name={escaped(service)};port={word(port)};infokeycount=0", "name-publish-response"
        )
        return answer.get("rc", "0") == "0"

    def lookup(self, service: str) -> str:
        answer = self.wire.ask(f"name-lookup;name={escaped(service)};infokeycount=0", "name-lookup-response")
        return answer.get("value", answer.get("port", "")) if answer.get("rc", "0") == "0" else ""

    def unpublish(self, service: str) -> bool:
        answer = self.wire.ask(f"name-unpublish;name={escaped(service)};infokeycount=0", "name-unpublish-response")
        return answer.get("rc", "0") == "0"
