"""Ways to get a run-time environment wrong, over the one that `ompy new rte` writes; each class has one."""

from __future__ import annotations

import os
import socket

from ompy_rte_planted import module as good
from ompy_rte_planted.component import VARIABLE

from ompy.core.errors import MPIError
from ompy.mca.component import Context, Offer, Refusal


def offer(context: Context, fault: str) -> Offer | Refusal:
    made = globals()[fault] if fault else good.PlantedRte
    descriptor = os.environ.pop(VARIABLE, "")
    return Offer(modules=[made(int(descriptor))]) if descriptor else Refusal(f"there is no {VARIABLE}")


class TwoAreRank0(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.rank = max(0, self.rank - 1)


class EveryJobIsCalledTheSame(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.job = "planted"


class ASecretForAllJobs(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.secret = b"the same every time"


class LocalRankStaysZero(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.local_rank = 0


class SecretInTheEnvironment(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        os.environ["PLANTED_SECRET"] = self.secret.hex()


class ShortSecret(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        self.secret = self.secret[:8]


class CutsLongValues(good.PlantedRte):
    def put(self, key, value):
        super().put(key, value[:4096])


class EmptyIsNothing(good.PlantedRte):
    def put(self, key, value):
        if value:
            super().put(key, value)


class TextAlone(good.PlantedRte):
    def put(self, key, value):
        super().put(key, value.decode(errors="ignore").encode())


class MissingIsEmpty(good.PlantedRte):
    def get(self, rank, key):
        try:
            return super().get(rank, key)
        except MPIError:
            return b""


class NegativeRanksCountFromTheEnd(good.PlantedRte):
    def get(self, rank, key):
        return super().get(rank % self.size, key)


class FenceWaitsLater(good.PlantedRte):
    """Until something is asked for."""

    owed = 0

    def commit_and_fence(self):
        self.wire.tell({"fence": self.mine})
        self.mine = {}
        self.owed += 1

    def get(self, rank, key):
        while self.owed:
            self.owed -= 1
            for known, new in zip(self.published, self.wire.hear()["fence"], strict=True):
                known.update(new)
        return super().get(rank, key)


class FenceForgets(good.PlantedRte):
    def commit_and_fence(self):
        self.published = [{} for _ in range(self.size)]
        super().commit_and_fence()


class EngineStops(good.PlantedRte):
    def commit_and_fence(self):
        self.has_met = False
        super().commit_and_fence()


class LeavesWithoutAWord(good.PlantedRte):
    def finalize(self):
        self.leave_to_parent()


class StaysConnected(good.PlantedRte):
    def finalize(self):
        self.wire.tell({"leave": True})


class AbortsAlone(good.PlantedRte):
    def abort(self, code, message):
        os._exit(code)


class AbortsWith1(good.PlantedRte):
    def abort(self, code, message):
        super().abort(1, message)


class AbortForgetsTheMessage(good.PlantedRte):
    def abort(self, code, message):
        super().abort(code, "ended")


class ListenWaits(good.PlantedRte):
    def listen(self):
        if not self.wire.connection.recv(1, socket.MSG_PEEK):
            raise EOFError
        return []


class ListenInvents(good.PlantedRte):
    def listen(self):
        super().listen()
        return [(self.job, 0, "is slow")]


class HearsNoEnd(good.PlantedRte):
    def listen(self):
        return []


class Outlives(good.PlantedRte):
    def outlive_launcher(self):
        return None


class ChildStaysConnected(good.PlantedRte):
    def leave_to_parent(self):
        self.descriptor = -1


class ChildSaysGoodbye(good.PlantedRte):
    def leave_to_parent(self):
        self.wire.connection.shutdown(socket.SHUT_RDWR)
        super().leave_to_parent()


class HandsItsSocketOn(good.PlantedRte):
    def __init__(self, descriptor):
        super().__init__(descriptor)
        os.set_inheritable(descriptor, True)


class HandsItsVariableOn(good.PlantedRte):
    """And the socket, so that whoever is started is a rank."""

    def __init__(self, descriptor):
        super().__init__(descriptor)
        os.environ[VARIABLE] = str(descriptor)
        os.set_inheritable(descriptor, True)


class Talks(good.PlantedRte):
    def commit_and_fence(self):
        super().commit_and_fence()
        print(f"rank {self.rank} has met the others", flush=True)
