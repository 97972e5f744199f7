"""PMI-1 on both sides: what ranks may say to the launcher, and what a server may answer a rank."""

from __future__ import annotations

import os
import random
import socket

from mutation import mutated

RANKS = 3
COMMANDS = tuple(
    line.encode() + b"\n"
    for line in (
        "cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=get_my_kvsname", "cmd=get_appnum",
        "cmd=get_universe_size", "cmd=put kvsname=ompy-1 key=0.card.0 value=1.QUJD", "cmd=get kvsname=ompy-1 key=0.card.0",
        "cmd=get key=secret", "cmd=barrier_in", "cmd=publish_name service=s port=p", "cmd=lookup_name service=s",
        "cmd=unpublish_name service=s", "cmd=abort exitcode=3 message=6162", "cmd=abort exitcode=-5", "cmd=finalize",
        "mcmd=spawn", "cmd=spawn", "", "cmd=", f"cmd=put key={'k' * 70} value={'v' * 2000}", "x" * 70_000,
    )
)  # fmt: skip
ANSWERS = (
    b"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    b"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n", b"cmd=my_kvsname kvsname=hydra-1\n",
    b"cmd=put_result rc=0 msg=success\n", b"cmd=put_result rc=-1 msg=no\n", b"cmd=barrier_out\n",
    b"cmd=get_result rc=0 msg=success value=2.QUJD\n", b"cmd=get_result rc=0 msg=success value=QUJD\n",
    b"cmd=get_result rc=-1 msg=x\n", b"cmd=appnum appnum=0\n", b"cmd=finalize_ack\n", b"cmd=maxes vallen_max=0\n",
    b"cmd=maxes vallen_max=-1\n", b"cmd=get_result rc=0 value=999999999.QUJD\n", b"cmd=get_result rc=0 value=-1.QUJD\n",
)  # fmt: skip


class PmiServer:
    """Three ranks that say anything, in pieces cut anywhere: the launcher's side answers, or raises ValueError."""

    name = "pmi-server"

    def begin(self) -> None:
        from ompy.runtime.pmi_server import KeyValueSpace, Session

        self.space, self.session = KeyValueSpace, Session

    def make(self, rng: random.Random) -> object:
        said = []
        for _ in range(rng.choice((1, 2, 5, 20, 60))):
            text = mutated(rng, rng.choice(COMMANDS), COMMANDS) if rng.random() < 0.5 else rng.choice(COMMANDS)
            cut = rng.randrange(len(text) + 1)
            said.append((rng.randrange(RANKS), text[:cut]))
            said.append((rng.randrange(RANKS) if rng.random() < 0.1 else said[-1][0], text[cut:]))
        return said

    def carry_out(self, given: object) -> str:
        space = self.space("ompy-1", RANKS)
        space.values["secret"] = "s" * 64
        answers: list[bytes] = []
        sessions = [self.session(space, rank, 0, answers.append) for rank in range(RANKS)]
        ended: set[int] = set()
        for rank, text in given:  # type: ignore[attr-defined]
            if rank in ended:
                continue
            try:
                sessions[rank].receive(text)
            except ValueError as error:
                ended.add(rank)
                if f"rank {rank}" not in str(error):
                    return f"the error does not name rank {rank}: {error}"
            if len(sessions[rank].partial) > 1 << 17:
                return f"{len(sessions[rank].partial)} bytes are kept of a command without an end"
        for answer in answers:
            if answer.count(b"\n") != 1 or not answer.endswith(b"\n"):
                return f"an answer of several lines: {answer!r}"
        if space.values.get("secret") != "s" * 64:
            return "a rank has replaced the secret"
        return ""

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return repr(given)[:800]


class PmiClient:
    """A server that answers anything: a rank comes to an end, by MPIError or as usual, and asks for nothing without bound."""

    name = "pmi-client"

    def begin(self) -> None:
        from ompy_rte_pmi.module import PmiRte

        from ompy.core.errors import MPIError
        from ompy.mca.pmi_wire import Wire

        self.rte, self.wire, self.error = PmiRte, Wire, MPIError
        os.environ.pop("OMPY_BOARD_FD", None)

    def make(self, rng: random.Random) -> object:
        script = [*ANSWERS[:3], b"cmd=put_result rc=0\n", b"cmd=barrier_out\n", ANSWERS[6], ANSWERS[7], ANSWERS[7]]
        script += [b"cmd=put_result rc=0\n", b"cmd=barrier_out\n", ANSWERS[6], ANSWERS[7], b"cmd=finalize_ack\n"]
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            script[rng.randrange(len(script))] = mutated(rng, rng.choice(ANSWERS), ANSWERS)
        return b"".join(script[: rng.randrange(1, len(script) + 1)]), rng.choice((0, 0, 1))

    def carry_out(self, given: object) -> str:
        script, rank = given  # type: ignore[misc]
        ours, theirs = socket.socketpair()
        with ours:
            ours.sendall(script)
            ours.shutdown(socket.SHUT_WR)
            wire = self.wire(theirs.detach())
            try:
                rte = self.rte(wire, rank, 2, rank, 2)
                rte.put("card", b"0123456789" * 20)
                rte.commit_and_fence()
                rte.get(1 - rank, "card")
                rte.finalize()
            except self.error:
                pass
            finally:
                wire.close()
        return ""

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return repr(given)[:1500]
