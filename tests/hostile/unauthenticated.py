"""`tests/hostile/unauthenticated.py PORT [--connections N]`: callers without the secret, at each port that a job has.

PORT is `launcher` (which waits for its proxies), `proxy` (which waits for those that it has started), `tcp` or `zmq` (of a
rank that exchanges messages).  The callers come in turn; some say nothing and stay for a while, so that there are always some.
Then the job goes on to its end, as if nobody had been there.  Exit code 1 when it does not.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import struct
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))

from launching import Launch, mpi

PORTS = ("launcher", "proxy", "tcp", "zmq")
PATIENCE = 60.0
# Callers that stay, of the latest.
STAY = 200
RESET = struct.pack("ii", 1, 0)
# As long as the file is there.
TALKS = """
data = bytes(range(256)) * 16
count = 0
print("up", flush=True)
while comm.bcast(os.path.exists({!r}), 0):
    assert comm.sendrecv(data + bytes([rank]), 1 - rank, source=1 - rank) == data + bytes([1 - rank])
    count += 1
print("done", rank, flush=True)
"""
MEETS = "print('done', rank, flush=True)\ncomm.Barrier()"


def words_of(rng: random.Random, heard: bytes) -> bytes:
    """What a caller says: nothing, garbage, what it was told, or what looks like the beginning of a right conversation."""
    kind = rng.randrange(6)
    if kind == 0:
        return b""
    if kind == 1:
        return heard
    if kind == 2:
        return rng.randbytes(32) + b"\0\1b" + rng.randbytes(32)
    if kind == 3:
        return b"ompy tcp" + b"\0\1" + rng.randbytes(72) + rng.randbytes(32)
    if kind == 4:
        return b"\xff" + bytes(8) + b"\x7f\x03\0" + rng.choice((b"NULL", b"PLAIN", b"CURVE")).ljust(20, b"\0") + bytes(32)
    return rng.randbytes(rng.randrange(300))


def visit(address: tuple[str, int], count: int, rng: random.Random) -> int:
    """So many callers in turn; now and then one waits for what is said first, to say it back.  Returns how many got through."""
    stay: deque[socket.socket] = deque()
    heard = b""
    came = 0
    for number in range(count):
        caller = socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
        # Without this the system would run out of ports.
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        caller.settimeout(PATIENCE)
        try:
            caller.connect(address)
            came += 1
            if number % 100 == 0:
                caller.settimeout(0.05)
                with contextlib.suppress(TimeoutError):
                    heard = caller.recv(100)
            caller.send(words_of(rng, heard))
        except ConnectionError:
            caller.close()
            continue
        stay.append(caller)
        if len(stay) > STAY or rng.random() < 0.9:
            stay.pop().close()
        if len(stay) > STAY:
            stay.popleft().close()
    for caller in stay:
        caller.close()
    return came


def port_of(process: psutil.Process) -> tuple[str, int] | None:
    """Where it listens, if it does."""
    for it in process.net_connections("tcp"):
        if it.status == psutil.CONN_LISTEN:
            return ("127.0.0.1" if it.laddr.ip in ("::", "0.0.0.0") else it.laddr.ip), it.laddr.port
    return None


def wait_for_port(job: Launch, words: str) -> tuple[str, int]:
    """Of a process of the job whose command line has the words."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for pid in [job.process.pid, *job.living()]:
            with contextlib.suppress(psutil.Error):
                it = psutil.Process(pid)
                if words in " ".join(it.cmdline()) and (found := port_of(it)) is not None:
                    return found
        assert job.process.poll() is None, job.process.communicate()
        time.sleep(0.05)
    raise AssertionError(f"no process with {words} listens")


def job_of(port: str, gate: Path) -> tuple[list[str], str]:
    """What is to be run for that port, until the gate is removed, and what is in the command line of who listens there."""
    if port in ("tcp", "zmq"):
        return ["-n", "2", "--mca", "btl", f"self,{port}", *mpi(TALKS.format(str(gate)))], "-c"
    last = {"launcher": "a", "proxy": "b"}[port]
    agent = f"""sh -c 'while [ $0 = {last} ] && [ -e {gate} ]; do sleep 0.1; done; exec sh -c "$1"'"""
    words = ["--launch-agent", agent, "--mca", "ompyrun_fan_out", "1", "--mca", "ompyrun_start_timeout", "86400"]
    return [*words, "--host", "a:1,b:1", *mpi(MEETS)], {"launcher": "ompy.cli.ompyrun", "proxy": "-m ompy.runtime.proxy"}[port]


def besiege(port: str, connections: int, seed: int) -> str:
    """What is wrong then; empty when nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        gate = Path(folder) / "gate"
        gate.touch()
        arguments, words = job_of(port, gate)
        with Launch(*arguments) as job:
            if port in ("tcp", "zmq"):
                job.lines(2)
            came = visit(wait_for_port(job, words), connections, random.Random(seed))
            if job.process.poll() is not None:
                job.finish()
                return f"the job has ended: {job.stdout}{job.stderr}"
            gate.unlink()
            status = job.finish(PATIENCE)
            left = job.wait_until_gone()
    if status or sorted(job.stdout.splitlines()) != ["done 0", "done 1"] or job.stderr or left:
        return f"exit code {status}, left {left}, said {job.stdout}{job.stderr}"
    return "" if came == connections else f"only {came} callers have found somebody there"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", choices=PORTS)
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    given = parser.parse_args()
    print(f"{given.port}: {given.connections} connections of seed {given.seed}", flush=True)
    begun = time.monotonic()
    problem = besiege(given.port, given.connections, given.seed)
    print(problem or f"nothing came of them, in {time.monotonic() - begun:.0f} s")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
