"""The process that ends a job whose launcher was killed.

    launcher ----pipe----> keeper       "4711\n" that rank has been started, "-4711\n" it has ended; "a4712\n" an agent, either
        X                    |
              end of file    +--- SIGKILL to every rank's process group and all that they started, segments swept
                             +--- and to agents (`agents.py`) that their proxies do not end by ending themselves, those among
                                  them that were started as the launcher was killed, before it could say so

No signal reaches the launcher's own code when somebody says `kill -9`; only a process beside it can see that.  It is there
before the first rank, and the launcher, whose end has come, kills it.  If somebody else does, the launcher makes another one;
if both go at once, a rank that waits notices (`rte/pmi`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

SEGMENTS = "/dev/shm"
OPEN_LIMIT = 65536
NOBODY = -1
# In the environment of every rank, and so of what it starts: by this the processes of a job are known.
JOB_VARIABLE = "OMPY_JOB"
# In that of agents, which have more time: whose they are.
AGENT_VARIABLE = "OMPY_AGENT_OF"
KILL_LOOKS = 100
KILL_PAUSE = 0.01
# So long an agent may stay.
AGENT_LOOKS = 200


def sweep(job: str) -> None:
    """Remove the segments that ranks of the job had no time to remove: their names contain the job's."""
    with contextlib.suppress(OSError):
        for name in os.listdir(SEGMENTS):
            if job in name:
                with contextlib.suppress(OSError):
                    os.unlink(f"{SEGMENTS}/{name}")


def agents_of(job: str) -> str:
    """What agents that this process starts have in their environment; other launchers of the job have their own."""
    return f"{job}.{os.getpid()}"


class Keeper:
    """The launcher's end.

    Parameters:
        job: the job's name.
        groups: process groups of ranks that run already.
        agents: those of agents.

    Errors: OSError where the system has no room for a process more.
    """

    def __init__(self, job: str, groups: list[int], agents: list[int]) -> None:
        reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        mark = agents_of(job)
        try:
            self.pid = os.fork()
        except OSError as error:
            os.close(reader)
            os.close(self.writer)
            raise OSError(f"no process can be started here ({error.strerror}; ulimit -u)") from None
        if self.pid == 0:
            # Nothing of the launcher's may stay open here, or its readers would wait for this process too.
            os.closerange(0, reader)
            os.closerange(reader + 1, OPEN_LIMIT)
            os.setsid()
            try:
                with open("/proc/self/comm", "w") as name:
                    name.write("ompyrun-keeper")
                watch(reader, job, mark, set(groups), set(agents))
            finally:
                os._exit(0)
        os.close(reader)

    def started(self, group: int) -> None:
        self.tell(f"{group}\n")

    def reaped(self, group: int) -> None:
        self.tell(f"-{group}\n")

    def agent(self, group: int) -> None:
        """One has been started, or has ended."""
        self.tell(f"a{group}\n")

    def tell(self, line: str) -> None:
        # A keeper that is dead or does not read is no reason to end the job.
        with contextlib.suppress(OSError):
            os.write(self.writer, line.encode())

    def close(self) -> None:
        """It has ended."""
        if self.writer >= 0:
            os.close(self.writer)
        self.pid = self.writer = NOBODY

    def dismiss(self) -> None:
        """Also one that somebody has stopped."""
        if self.pid == NOBODY:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.close()


def watch(reader: int, job: str, mark: str, groups: set[int], agents: set[int]) -> None:
    """Until end of file; then end what is left."""
    data = b""
    while piece := os.read(reader, 65536):
        data += piece
    for line in data.decode().split():
        if line.startswith("a"):
            agents.symmetric_difference_update({int(line[1:])})
        else:
            groups.symmetric_difference_update({abs(int(line))})
    for _ in range(KILL_LOOKS):
        groups = {group for group in groups if kill(group)}
        if not kill_strays(JOB_VARIABLE, job) and not groups:
            break
        time.sleep(KILL_PAUSE)
    sweep(job)
    for _ in range(AGENT_LOOKS):
        agents = {group for group in agents if kill(group, 0)}
        if not agents and not strays(AGENT_VARIABLE, mark):
            break
        time.sleep(KILL_PAUSE)
    for group in agents:
        kill(group)
    kill_strays(AGENT_VARIABLE, mark)


def strays(variable: str, value: str) -> list[int]:
    """Whatever has this in its environment, in whichever session."""
    needle = f"{variable}={value}\0".encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as stream:
                if needle in stream.read() + b"\0":
                    found.append(int(name))
    return found


def kill_strays(variable: str, value: str) -> int:
    """SIGKILL to all of them; returns how many there were."""
    found = strays(variable, value)
    for process in found:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return len(found)


def kill(group: int, number: int = signal.SIGKILL) -> bool:
    """Send a signal; False when there is nobody left in the process group; killed processes take a moment to be gone."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
