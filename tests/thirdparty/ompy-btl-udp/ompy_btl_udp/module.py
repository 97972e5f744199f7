"""The transport: one socket a rank, a flow for each peer.

A message is cut into fragments, which are in the flow until they are acknowledged; the descriptor is complete as soon as they
are, since they are copies.  Acknowledgements ride on data, or go alone at the end of `progress`.

A peer that is gone: its host answers what is sent to it with "nobody listens there", which Linux keeps in the socket's error
queue.  So that a rank that only receives finds out, too, peers that it has exchanged messages with are probed while it waits.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc import Proc
from ompy.mca.btl import BACK_PRESSURE, IN_ORDER, SEND, TAKEN, Btl, Descriptor, Endpoint
from ompy.mca.rte import Rte
from ompy_btl_udp.datagram import ACKNOWLEDGEMENT, DATA, HEADER_SIZE, PROBE, Header, Seal
from ompy_btl_udp.flow import Flow, Sent

IP_RECVERR = 11  # <linux/in.h>
MSG_ERRQUEUE = 0x2000
LARGEST = 65507  # bytes of a UDP datagram
PROBE_INTERVAL = 0.5
TICK = 0.005  # seconds between looks at the clock's business
BATCH = 32  # datagrams taken in one call of `progress`

Address = tuple[str, int]

# Transports that are open in this process.
transports: WeakSet[UdpBtl] = WeakSet()


def let_go() -> None:
    """In a child made by fork, which would keep the socket open when its rank is gone: put nothing in its place."""
    for transport in transports:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, transport.socket.fileno(), inheritable=False)
        os.close(nothing)


os.register_at_fork(after_in_child=let_go)


class UdpEndpoint(Endpoint):
    """A peer.

    Attributes:
        rank: in the job's world.
        failure: why contact was lost, or None.
    """

    def __init__(self, btl: Btl, proc: Proc) -> None:
        super().__init__(btl, proc)
        self.rank = proc.rank
        self.failure: MPIError | None = None


def own_address(given: str, one_host: bool) -> str:
    """The address to listen on."""
    if given or one_host:
        return given or "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent: the system only picks the way out
        return str(probe.getsockname()[0])


class UdpBtl(Btl):
    """UDP to every rank of the job.

    Parameters:
        rte: this process's place in its job.
        value: gives the component's parameters by short name.

    Errors: OSError when there is nowhere to listen, ValueError for a parameter out of range.
    """

    def __init__(self, rte: Rte, value: Callable[[str], Any]) -> None:
        self.name = "udp"
        self.flags = SEND | IN_ORDER
        self.max_send_size = value("max_send_size")
        self.eager_limit = min(value("eager_limit"), self.max_send_size)
        self.rndv_eager_limit = min(4096, self.eager_limit)
        self.latency = 80000
        self.bandwidth = 200
        self.exclusivity = 5
        self.payload_size = value("datagram_size") - HEADER_SIZE
        self.window = value("window")
        Flow(self.window)  # refuses what can't be
        self.rank = rte.rank
        self.job = rte.job
        self.size = rte.size
        self.seal = Seal(rte.secret, rte.job)
        self.drop = value("drop")
        self.random = random.Random(value("seed") * 65537 + rte.rank)
        # By rank; a peer may write before we have an endpoint for it.
        self.endpoints: dict[int, UdpEndpoint] = {}
        self.flows: dict[int, Flow] = {}
        self.addresses: dict[int, Address] = {}
        self.lock = allocate_lock()
        self.contended = False  # a send found another thread inside
        self.complete: deque[tuple[int, int, bytearray]] = deque()  # (rank, tag, bytes) that no receiver has seen yet
        self.suspects: list[tuple[UdpEndpoint, int]] = []
        self.next_tick = 0.0
        self.next_probe = 0.0
        self.counters |= dict.fromkeys(("datagrams sent", "datagrams resent", "dropped on purpose", "datagrams of others"), 0)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self.socket.setsockopt(socket.SOL_SOCKET, buffer, 4 << 20)
            self.socket.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
            self.socket.bind((own_address(value("address"), rte.local_size == rte.size), 0))
        except OSError:
            self.socket.close()
            raise
        transports.add(self)

    # -- peers

    def address(self) -> bytes:
        host, port = self.socket.getsockname()
        return f"{host}:{port}".encode()

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | str]:
        return [self.reach(proc) for proc in procs]

    def reach(self, proc: Proc) -> UdpEndpoint | str:
        """An endpoint for a peer, or why there is none."""
        if proc.job != self.job:
            return f"it belongs to job {proc.job}, whose secret this one does not know"
        if self.name not in proc.card:
            return f"rank {proc.rank} did not open udp; `--mca btl_base_verbose 1` shows why"
        host, _, port = proc.card[self.name].decode().rpartition(":")
        if host.startswith("127.") and not proc.is_local:
            return f"rank {proc.rank} on {proc.host} listens on {host}, which is its own host's; set btl_udp_address"
        endpoint = self.endpoints.get(proc.rank)
        if endpoint is None:
            endpoint = self.endpoints[proc.rank] = UdpEndpoint(self, proc)
            self.addresses[proc.rank] = host, int(port)
        return endpoint

    def flow(self, rank: int) -> Flow:
        found = self.flows.get(rank)
        if found is None:
            found = self.flows[rank] = Flow(self.window)
        return found

    def del_procs(self, endpoints: Sequence[Endpoint]) -> int:
        with self.lock:
            for endpoint in endpoints:
                assert isinstance(endpoint, UdpEndpoint)
                if self.endpoints.pop(endpoint.rank, None):
                    self.flow(endpoint.rank).sent.clear()
        return 0

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"datagrams resent": sum(flow.resent for flow in self.flows.values())}

    # -- messages

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert isinstance(endpoint, UdpEndpoint)
        if endpoint.failure is not None:
            descriptor.complete(ERR_PROC_FAILED)
            return TAKEN
        if not self.lock.acquire(False):
            self.contended = True
            return BACK_PRESSURE
        try:
            if not self.cut(endpoint.rank, tag, bytes(descriptor.view) + bytes(descriptor.payload_view)):
                return BACK_PRESSURE
        finally:
            self.lock.release()
        descriptor.complete()
        return TAKEN

    def cut(self, rank: int, tag: int, data: bytes) -> bool:
        """Send a message in fragments; False when they find no room."""
        flow = self.flow(rank)
        starts = range(0, len(data), self.payload_size) or range(1)
        if not flow.has_room(len(starts)):
            return False
        now = time.monotonic()
        for start in starts:
            self.transmit(rank, flow.add(tag, start == starts[-1], data[start : start + self.payload_size], now))
        return True

    def transmit(self, rank: int, fragment: Sent) -> None:
        arrived = self.flow(rank).acknowledgement()
        self.emit(Header(DATA, fragment.tag, fragment.last, self.rank, rank, fragment.sequence, *arrived), fragment.payload)

    def say(self, rank: int, kind: int) -> None:
        """A datagram without data."""
        self.emit(Header(kind, 0, 0, self.rank, rank, 0, *self.flow(rank).acknowledgement()), b"")

    def emit(self, header: Header, payload: bytes) -> None:
        self.counters["datagrams sent"] += 1
        if self.drop and self.random.random() < self.drop:
            self.counters["dropped on purpose"] += 1
            return
        try:
            self.socket.sendto(self.seal.pack(header, payload), self.addresses[header.destination])
        except BlockingIOError:
            pass  # as good as lost: it will be sent again
        except OSError:
            # The socket tells of an earlier datagram, to whomever; this one counts as lost.
            self.next_tick = self.next_probe = 0.0

    # -- progress

    def progress(self) -> int:
        if not self.lock.acquire(False):
            return 0
        events = int(self.contended)
        self.contended = False
        try:
            events += self.collect()
            now = time.monotonic()
            if now >= self.next_tick:
                self.next_tick = now + TICK
                self.tick(now)
            complete = bool(self.complete)
            if not complete:
                self.acknowledge()
        finally:
            self.lock.release()
        # Whoever takes a message may send: its answer takes the acknowledgement along.  Who raises has taken his.
        while self.complete:
            rank, tag, message = self.complete.popleft()
            self.deliver_view(tag, self.endpoints.get(rank), message)
        if complete and self.lock.acquire(False):
            self.acknowledge()
            self.lock.release()
        return events + self.accuse()

    def collect(self) -> int:
        """Take datagrams, and note the messages that they complete."""
        events = 0
        for _ in range(BATCH):
            try:
                datagram, address = self.socket.recvfrom(LARGEST)
            except BlockingIOError:
                break
            except OSError:
                self.read_errors()
                continue
            unpacked = self.seal.unpack(memoryview(datagram))
            if unpacked is None or unpacked[0].destination != self.rank or unpacked[0].source >= self.size:
                self.counters["datagrams of others"] += 1
                continue
            header, payload = unpacked
            self.addresses.setdefault(header.source, address)
            flow = self.flow(header.source)
            events += flow.acknowledged(header.expected, header.beyond, time.monotonic())
            if header.kind == DATA:
                messages = flow.take(header.sequence, header.tag, bool(header.last), bytes(payload))
                self.complete += [(header.source, tag, message) for tag, message in messages]
                events += len(messages)
        return events

    def acknowledge(self) -> None:
        for rank, flow in self.flows.items():
            if flow.owes:
                self.say(rank, ACKNOWLEDGEMENT)

    def tick(self, now: float) -> None:
        """What the clock asks for: resends and probes."""
        for rank, flow in self.flows.items():
            for fragment in flow.due(now):
                self.transmit(rank, fragment)
        if now >= self.next_probe:
            self.next_probe = now + PROBE_INTERVAL
            for rank, endpoint in self.endpoints.items():
                if endpoint.failure is None and self.flow(rank).is_used:
                    self.say(rank, PROBE)
            self.read_errors()

    def descriptor(self) -> int:
        return self.socket.fileno()

    def may_sleep(self) -> bool:
        return not (self.contended or self.complete)

    # -- peers that are gone

    def read_errors(self) -> None:
        """The socket's error queue: which of the peers is not there any more."""
        while True:
            try:
                _, ancillary, _, address = self.socket.recvmsg(0, 512, MSG_ERRQUEUE)
            except OSError:
                return
            for rank, endpoint in self.endpoints.items():
                if self.addresses[rank] == address and ancillary:
                    self.suspects.append((endpoint, struct.unpack_from("=I", ancillary[0][2])[0]))

    def accuse(self) -> int:
        """Report lost peers, each once; returns how many."""
        suspects, self.suspects = self.suspects, []
        found = 0
        for endpoint, error in suspects:
            if endpoint.failure is None:
                found += 1
                proc = endpoint.proc
                host, port = self.addresses[endpoint.rank]
                where = f"rank {proc.rank} (host {proc.host}, pid {proc.pid}) at {host}:{port}"
                endpoint.failure = MPIError(ERR_PROC_FAILED, f"btl udp lost {where}: {os.strerror(error)}")
                self.flow(endpoint.rank).sent.clear()
                self.report_error(proc, endpoint.failure)
        return found

    # -- the end

    def finalize(self) -> int:
        transports.discard(self)
        self.socket.close()
        return 0
