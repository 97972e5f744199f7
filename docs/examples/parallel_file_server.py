"""A parallel file server on Puma portals: stripes of each file on the disks of several servers (Puma, 4.3 and 4.4).

    python docs/examples/parallel_file_server.py                         nodes of one process
    ompyrun -n 5 python docs/examples/parallel_file_server.py --job      a node a rank, over the job's transports

Write: a client opens its data as a read memory portal and says so in a request of a few bytes; each server pulls its
stripes through one buffer, at its own pace. Read: a client opens memory as a sender managed portal; each server writes its
stripes where they belong. Neither client nor servers copy or wait for one another.

      client                     server 0: stripes 0, 3, ...        server 1: stripes 1, 4, ...
      read memory portal  <----- "8 kB at 0"                 <----- "8 kB at 8192"
      |0|1|2|3|4|5|...    -----> buffer -> disk              -----> buffer -> disk
      counter of servers  <----- done                        <----- done
"""

from __future__ import annotations

import argparse
import hashlib
import random
import struct
import tempfile
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from ompy_puma.application import Application, Queued
from ompy_puma.capability import GroupCapability
from ompy_puma.kernel import QKernel
from ompy_puma.kinds import kernel_managed, read_memory, sender_managed
from ompy_puma.loop_wire import Network
from ompy_puma.pct import ProcessControlThread
from ompy_puma.transmission import SendVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ompy_puma.pct import Asker

SERVERS, CLIENTS = 1, 2  # process groups
CONTEXT = 1
WRITE, READ, CLOSE = range(3)
REQUEST = struct.Struct("<BQ32s")  # what to do, bytes of the file, its name
DATA, DONE = 1, 2  # portals of a client
BUFFER, FIRST_CLIENT = 1, 2  # portals of a server
INBOX = 4096  # bytes that a server keeps for one client's requests

Task = "Iterator[None]"  # goes on at each `next`, and yields while it has to wait


def send(process: Application, *where: int, body: bytes | memoryview = b"", **options: int | None) -> Iterator[None]:
    """Send to a group's process, and wait until the body may be changed."""
    while (verdict := process.send(*where, body, **options)) is SendVerdict.OUT_OF_RESOURCE:
        yield
    while isinstance(verdict, Queued) and verdict.status is None:
        yield


class Server:
    """One server and its disk.

    Attributes:
        pulled, pushed: stripes so far.
    """

    def __init__(self, pct: ProcessControlThread, process: Application, servers: int, stripe: int, disk: Path) -> None:
        self.process = process
        self.servers = servers
        self.stripe = stripe
        self.disk = disk
        self.memory = bytearray(stripe)  # all that it ever holds of files
        self.buffer = sender_managed(process, BUFFER, self.memory)
        self.inboxes: list[int] = []
        self.pulled = self.pushed = 0
        self.clients = pct.join(process, "clients")
        pct.name_server(f"files {process.rank}", process, self.accept)

    def accept(self, asker: Asker) -> int | None:
        """A portal for each client, so that none can fill another's."""
        if asker.group != CLIENTS:
            return None
        portal = FIRST_CLIENT + len(self.inboxes)
        self.inboxes.append(kernel_managed(self.process, portal, mmap(-1, INBOX)))
        return portal

    def stripes(self, size: int) -> Iterator[tuple[int, int]]:
        """(offset, length) of this server's stripes of a file."""
        for offset in range(self.process.rank * self.stripe, size, self.servers * self.stripe):
            yield offset, min(self.stripe, size - offset)

    def serve(self, clients: int) -> Iterator[None]:
        """Carry requests out, one after another, until so many clients have closed."""
        while not self.clients.done:
            yield
        while clients:
            yield
            for inbox in self.inboxes:
                for letter in self.process.letters(inbox)[:1]:
                    what, size, name = REQUEST.unpack(letter.body)
                    rank = letter.message.source_rank
                    letter.release()
                    if what == CLOSE:
                        clients -= 1
                        continue
                    yield from (self.pull if what == WRITE else self.push)(rank, size, self.disk / name.rstrip(b"\0").decode())
                    yield from send(self.process, self.clients.result(), rank, DONE)

    def pull(self, client: int, size: int, path: Path) -> Iterator[None]:
        """Take this server's stripes out of a client's read memory."""
        with path.open("wb") as file:
            for offset, length in self.stripes(size):
                before = self.process.counters(self.buffer)["messages"]
                ask = {"offset": offset, "answer": BUFFER, "answer_length": length}
                yield from send(self.process, self.clients.result(), client, DATA, **ask)
                while self.process.counters(self.buffer)["messages"] == before:
                    yield
                file.write(memoryview(self.memory)[:length])
                self.pulled += 1

    def push(self, client: int, size: int, path: Path) -> Iterator[None]:
        """Put this server's stripes where they belong in a client's memory."""
        with path.open("rb") as file:
            for offset, length in self.stripes(size):
                file.readinto(memoryview(self.memory)[:length])
                part = memoryview(self.memory)[:length]
                yield from send(self.process, self.clients.result(), client, DATA, body=part, offset=offset)
                self.pushed += 1


class Client:
    """What a program holds to use the servers."""

    def __init__(self, pct: ProcessControlThread, process: Application, servers: int) -> None:
        self.process = process
        self.done = process.single(bytearray(0))  # counts messages of no bytes
        process.attach(DONE, self.done)
        self.errands = [pct.connect(process, f"files {server}") for server in range(servers)]

    def ask(self, what: int, size: int, name: str) -> Iterator[None]:
        request = REQUEST.pack(what, size, name.encode())
        for errand in self.errands:
            while not errand.done:
                yield
            while self.process.send_server(errand.result(), request) is SendVerdict.OUT_OF_RESOURCE:
                yield

    def transfer(self, what: int, name: str, memory: bytes | bytearray) -> Iterator[None]:
        """Write `memory` to a file, or read a file into it."""
        open_memory = read_memory if what == WRITE else sender_managed
        portal = open_memory(self.process, DATA, memory)
        goal = self.process.counters(self.done)["messages"] + len(self.errands)
        yield from self.ask(what, len(memory), name)
        while self.process.counters(self.done)["messages"] < goal:
            yield
        self.process.close_portal(DATA)
        self.process.discard(portal)

    def close(self) -> Iterator[None]:
        """Nothing more will be asked."""
        yield from self.ask(CLOSE, 0, "")


def work(client: Client, size: int, report: list[str]) -> Iterator[None]:
    """Write a file, read it back, compare."""
    rank = client.process.rank
    data = random.Random(rank).randbytes(size)
    yield from client.transfer(WRITE, f"file{rank}", data)
    copy = bytearray(size)
    yield from client.transfer(READ, f"file{rank}", copy)
    yield from client.close()
    if copy != data:
        raise SystemExit(f"client {rank}: what was read is not what was written")
    report.append(f"client {rank}: {size} bytes written and read back, sha256 {hashlib.sha256(copy).hexdigest()[:16]}")


def summary(server: Server) -> str:
    files = sum(path.stat().st_size for path in server.disk.iterdir())
    return (f"server {server.process.rank}: {server.pulled} stripes pulled, {server.pushed} pushed, {files} bytes on disk, "
            f"{len(server.memory)} bytes of buffer")  # fmt: skip


def run_here(servers: int, clients: int, size: int, stripe: int, disks: Path) -> list[str]:
    """All nodes in this process."""
    network = Network(packet_size=65536)
    total = servers + clients
    pcts = [ProcessControlThread(QKernel(node, network.wire(node), engine=False), range(total)) for node in range(total)]
    groups = capabilities(servers, clients)
    pcts[servers].name_group("clients", groups[1])
    processes = [member(pct, groups, servers) for pct in pcts]
    stores = [Server(pcts[node], processes[node], servers, stripe, disk(disks, node)) for node in range(servers)]
    users = [Client(pcts[node], processes[node], servers) for node in range(servers, total)]
    report: list[str] = []
    network.run()
    tasks = [store.serve(clients) for store in stores] + [work(user, size, report) for user in users]
    while tasks:
        tasks = [task for task in tasks if next(task, tasks) is None]
        network.run()
    return sorted(report) + [summary(store) for store in stores]


def run_in_job(servers: int, size: int, stripe: int, disks: Path) -> list[str]:
    """A node a rank: the first ranks are servers, the rest clients."""
    from ompy_puma.btl_wire import kernel_over

    from ompy import MPI
    from ompy.core.progress import progress_once
    from ompy.mpi.environment import instance

    world = MPI.COMM_WORLD
    if world.size <= servers:
        raise SystemExit(f"{servers} servers and at least one client: start {servers + 1} ranks or more, not {world.size}")
    groups = capabilities(servers, world.size - servers)
    pct = ProcessControlThread(kernel_over(instance().bml, world.rank), range(world.size))
    if world.rank == servers:
        pct.name_group("clients", groups[1])
    process = member(pct, groups, servers)
    world.Barrier()
    report: list[str] = []
    if world.rank < servers:
        store = Server(pct, process, servers, stripe, disk(disks, world.rank))
        world.Barrier()
        task = store.serve(world.size - servers)
    else:
        world.Barrier()
        task = work(Client(pct, process, servers), size, report)
    while next(task, task) is None:
        progress_once()
    if world.rank < servers:
        report.append(summary(store))
    found = world.gather(report)  # nobody leaves before all are done
    return sorted(line for lines in found for line in lines) if found is not None else []


def capabilities(servers: int, clients: int) -> tuple[GroupCapability, GroupCapability]:
    """The groups of servers and of clients: nodes 0, 1, ... and those behind them."""
    return (
        GroupCapability(SERVERS, [(node, CONTEXT) for node in range(servers)]),
        GroupCapability(CLIENTS, [(servers + node, CONTEXT) for node in range(clients)]),
    )


def member(pct: ProcessControlThread, groups: tuple[GroupCapability, GroupCapability], servers: int) -> Application:
    """The process of a node: a server on the first nodes, a client on the others."""
    group, rank = (SERVERS, pct.rank) if pct.rank < servers else (CLIENTS, pct.rank - servers)
    process = Application(group, rank)
    process.events = None
    pct.load(process, groups[group - SERVERS])
    return process


def disk(disks: Path, node: int) -> Path:
    path = disks / f"disk{node}"
    path.mkdir(exist_ok=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--clients", type=int, default=2, help="without --job; with it, the ranks that are left")
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of each client's file")
    parser.add_argument("--stripe", type=int, default=8192, help="bytes of a stripe, and of a server's buffer")
    parser.add_argument("--job", action="store_true", help="a node a rank, over the job's transports")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.job:
            lines = run_in_job(options.servers, options.size, options.stripe, Path(folder))
        else:
            lines = run_here(options.servers, options.clients, options.size, options.stripe, Path(folder))
        print("\n".join(lines), end="\n" if lines else "")


if __name__ == "__main__":
    main()
