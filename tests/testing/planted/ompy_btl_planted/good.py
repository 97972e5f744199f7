"""A transport that keeps its contract: datagrams on Unix sockets, one socket a process.

Put, get and atomics are requests that the target answers from its progress:

    origin   PUT number, address, bytes         target writes        DONE number
             GET number, address, size          target reads         DONE number, bytes; None: withdrawn
             ATOMIC number, address, operation  target computes      DONE number, old value

Each step is a method of its own, so that a variant can do one of them wrong.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from select import EPOLLIN, epoll
from socket import AF_UNIX, SOCK_DGRAM, SOCK_NONBLOCK, socket

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED, ERR_RMA_RANGE, MPIError
from ompy.core.memory import view
from ompy.mca import btl as contract
from ompy.mca.btl import BACK_PRESSURE, TAKEN, Btl, Descriptor, Endpoint

MESSAGE, PUT, GET, ATOMIC, DONE = range(5)
LARGEST = 32768

OPERATIONS = {
    "add": lambda old, operand, compare: old + operand,
    "and": lambda old, operand, compare: old & operand,
    "or": lambda old, operand, compare: old | operand,
    "xor": lambda old, operand, compare: old ^ operand,
    "swap": lambda old, operand, compare: operand,
    "min": lambda old, operand, compare: min(old, operand),
    "max": lambda old, operand, compare: max(old, operand),
    "cswap": lambda old, operand, compare: operand if old == compare else old,
}


class Peer(Endpoint):
    life = -1  # a pidfd
    lost = False


class GoodBtl(Btl):
    def __init__(self, rte) -> None:
        self.name = "planted"
        self.flags = (
            contract.SEND | contract.PUT | contract.GET | contract.ATOMICS | contract.IN_ORDER | contract.NEEDS_REGISTRATION
            | contract.RENEWAL
        )  # fmt: skip
        self.rte = rte
        self.eager_limit = 4096
        self.rndv_eager_limit = 1024
        self.max_send_size = self.put_limit = self.get_limit = LARGEST
        self.put_alignment = self.get_alignment = 1
        self.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK)
        self.socket.bind("")  # the system finds a free abstract name
        self.watched = epoll()
        self.watched.register(self.socket, EPOLLIN)
        self.peers: dict[bytes, Peer] = {}
        self.registered: dict[bytes, tuple[int, int]] = {}
        self.withdrawn: list[tuple[int, int]] = []
        self.handles = 0
        self.requests: dict[int, Descriptor] = {}  # sent, not answered
        self.numbers = 0
        self.answers: deque[tuple[bytes, bytes]] = deque()  # that found no room yet
        self.held_back = False

    # -- peers

    def address(self) -> bytes:
        return bytes(self.socket.getsockname())

    def add_procs(self, procs) -> list[Endpoint | str]:
        return [self.reach(proc) for proc in procs]

    def reach(self, proc) -> Endpoint | str:
        if proc.is_self:
            return "this process itself"
        peer = self.peers.setdefault(proc.card[self.name], Peer(self, proc))
        if peer.life < 0:
            peer.life = os.pidfd_open(proc.pid)
            self.watched.register(peer.life, EPOLLIN)
        return peer

    def del_procs(self, endpoints) -> int:
        for endpoint in endpoints:
            peer = self.peers.pop(endpoint.proc.card[self.name], None)
            if peer is not None and not peer.lost:
                self.watched.unregister(peer.life)
                os.close(peer.life)
        return 0

    def renew(self, endpoint: Endpoint) -> int:
        return 0  # datagrams need no contact

    def finalize(self) -> int:
        self.del_procs(list(self.peers.values()))
        self.watched.close()
        self.socket.close()
        return super().finalize()

    # -- messages

    def transmit(self, address: bytes, packet: bytes) -> bool:
        """Whether there was room."""
        try:
            self.socket.sendto(packet, address)
        except BlockingIOError:
            self.held_back = True
            return False
        except ConnectionError:
            return True  # it has ended, and progress will see that
        return True

    def pack(self, descriptor: Descriptor, tag: int) -> bytes:
        return bytes([MESSAGE, tag]) + descriptor.view + descriptor.payload_view

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert isinstance(endpoint, Peer)
        if endpoint.lost:
            descriptor.complete(ERR_PROC_FAILED)
            return TAKEN
        if not self.transmit(endpoint.proc.card[self.name], self.pack(descriptor, tag)):
            return self.refuse(endpoint, descriptor, tag)
        self.sent(descriptor)
        return TAKEN

    def refuse(self, endpoint: Peer, descriptor: Descriptor, tag: int) -> int:
        return BACK_PRESSURE

    def sent(self, descriptor: Descriptor) -> None:
        descriptor.complete()

    def arrived(self, sender: bytes, tag: int, data: bytes) -> None:
        self.deliver_view(tag, self.peers.get(sender), data)

    # -- remote memory

    def register_mem(self, endpoint: Endpoint, address: int, size: int) -> bytes:
        self.handles += 1
        handle = self.handles.to_bytes(4, "little")
        self.registered[handle] = address, size
        return handle

    def deregister_mem(self, handle: bytes) -> int:
        del self.registered[handle]
        return 0

    def memory(self, handle: bytes, address: int, size: int) -> memoryview:
        """Registered memory of this process, for a peer."""
        start, length = self.registered[handle]
        if not start <= address <= address + size <= start + length:
            raise MPIError(ERR_OTHER, f"{size} bytes at {address} are not within the registration")
        return view(address, size)

    def request(self, endpoint: Endpoint, descriptor: Descriptor, kind: int, *fields: object) -> int:
        assert isinstance(endpoint, Peer)
        if endpoint.lost:
            descriptor.complete(ERR_PROC_FAILED)
            return TAKEN
        text = pickle.dumps((self.numbers, descriptor.remote_handle, descriptor.remote_address, *fields))
        if not self.transmit(endpoint.proc.card[self.name], bytes([kind]) + text):
            return BACK_PRESSURE
        self.requests[self.numbers] = descriptor
        self.numbers += 1
        return TAKEN

    def put(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.request(endpoint, descriptor, PUT, bytes(descriptor.local_view))

    def get(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        return self.request(endpoint, descriptor, GET, descriptor.size)

    def atomic(self, endpoint: Endpoint, descriptor: Descriptor, operation: str, operand: int, compare: int) -> int:
        return self.request(endpoint, descriptor, ATOMIC, operation, operand, compare, descriptor.size)

    def flush(self, endpoint: Endpoint | None) -> int:
        return BACK_PRESSURE if self.requests else TAKEN

    def withdraw(self, endpoint: Endpoint, address: int, size: int) -> bool:
        self.withdrawn.append((address, size))
        return True

    def restore(self, endpoint: Endpoint, address: int, size: int) -> int:
        self.withdrawn.remove((address, size))
        return 0

    def is_withdrawn(self, address: int, size: int) -> bool:
        return any(address < start + length and start < address + size for start, length in self.withdrawn)

    def serve(self, kind: int, handle: bytes, address: int, *fields) -> bytes | None:
        """Carry a peer's request out; returns what it gets back, None for an error."""
        if kind in (PUT, GET) and self.is_withdrawn(address, len(fields[0]) if kind == PUT else fields[0]):
            return None
        if kind == PUT:
            self.memory(handle, address, len(fields[0]))[:] = fields[0]
            return b""
        if kind == GET:
            return bytes(self.memory(handle, address, fields[0]))
        operation, operand, compare, width = fields
        word = self.memory(handle, address, width)
        old = int.from_bytes(word, "little", signed=True)
        new = self.compute(operation, old, operand, compare)
        before = bytes(word)
        word[:] = new.to_bytes(16, "little", signed=True)[:width]
        return self.old_value(before, bytes(word))

    def compute(self, operation: str, old: int, operand: int, compare: int) -> int:
        return OPERATIONS[operation](old, operand, compare)

    def old_value(self, before: bytes, after: bytes) -> bytes:
        return before

    def answer(self, sender: bytes, number: int, data: bytes | None) -> None:
        self.answers.append((sender, bytes([DONE]) + pickle.dumps((number, data))))

    def done(self, number: int, data: bytes | None) -> None:
        descriptor = self.requests.pop(number)
        if data:
            self.store(descriptor, data)
        descriptor.complete(ERR_RMA_RANGE if data is None else 0)

    def store(self, descriptor: Descriptor, data: bytes) -> None:
        view(descriptor.local_address, len(data))[:] = data

    # -- going on

    def progress(self) -> int:
        self.held_back = False
        events = 0
        while self.answers and self.transmit(*self.answers[0]):
            self.answers.popleft()
            events += 1
        ready = {number for number, _ in self.watched.poll(0)}
        if self.socket.fileno() in ready:
            packet, sender = self.socket.recvfrom(2 * LARGEST)
            self.take(packet, sender)
            events += 1
        elif ready:
            events += self.bury([peer for peer in self.peers.values() if peer.life in ready])
        return events

    def take(self, packet: bytes, sender: bytes) -> None:
        kind = packet[0]
        if kind == MESSAGE:
            self.arrived(sender, packet[1], packet[2:])
        elif kind == DONE:
            self.done(*pickle.loads(packet[1:]))
        else:
            number, handle, address, *fields = pickle.loads(packet[1:])
            self.answer(sender, number, self.serve(kind, handle, address, *fields))

    def bury(self, dead: list[Peer]) -> int:
        """Peers have ended, and all that they had sent is read."""
        for peer in dead:
            peer.lost = True
            self.watched.unregister(peer.life)
            os.close(peer.life)
            self.report_error(peer.proc, MPIError(ERR_PROC_FAILED, f"process {peer.proc.pid} has ended"))
        return len(dead)

    def descriptor(self) -> int:
        return self.watched.fileno()

    def may_sleep(self) -> bool:
        return not self.held_back and not self.answers
