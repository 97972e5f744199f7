"""The transport: one ROUTER socket, one connection for each direction of a pair, made at the first message.

    rank 0                                          rank 1
    ROUTER listens on its card's URL                ROUTER listens on its card's URL
      send  -> [name of the connection][bytes, tag]
                   connection made by rank 0 --------> [identity of rank 0][bytes, tag] -> receiver of the tag
                                               <-------- connection made by rank 1         (for the other direction)

ROUTER was measured against PUSH/PULL, DEALER and PAIR: the same latency and bandwidth, within the noise, and one socket
serves every peer, so that a process holds two connections for a peer that it talks to and nothing for the others.
The tag is the last byte: what stands before it is then in place for the receiver, aligned, without a copy.
Messages are copied into ZeroMQ: pyzmq's zero-copy path reports back through a Python thread, which costs more than the
copy of a fragment that is still in the cache.  ZeroMQ takes memory for each message from `malloc`, which is told to keep it
(`kept_memory`): with new pages for each, a stream of long messages took twice as long.

A message has two parts here; one of more comes from no rank, and is dropped whole.

Callers who say nothing would take every descriptor of the process: while too many have not shown who they are no more are
accepted (`listener.py`), until they are through or ZeroMQ has thrown them out (`handshake_timeout`).

An empty message says goodbye, over the connections that peers made to us: they then know that losing them is no failure.

Threads: ZeroMQ sockets serve one thread at a time and let the GIL go; the engine has one owner at a time, so no lock is
needed here ("WHAT IT MAY RELY ON" of `ompy/mca/btl.pxd`).  Fork: a child of a rank must not use its parent's sockets;
pyzmq drops them there without touching the connections, which `inheritance.py` closes there.
"""

from __future__ import annotations

import contextlib
import time
from _socket import socket as Socket
from select import EPOLLIN, epoll

import zmq

from ompy.core.congestion import CongestionControl
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.memory import keep_freed
from ompy.core.proc import Proc
from ompy.mca.btl import ASYNCHRONOUS, BACK_PRESSURE, IN_ORDER, RENEWAL, SEND, TAKEN, Btl, Descriptor, Endpoint
from ompy.mca.rte import Rte
from ompy_btl_zmq.address import Card, choose, is_loopback, listen, pack, unpack
from ompy_btl_zmq.endpoint import ZmqEndpoint
from ompy_btl_zmq.inheritance import transports
from ompy_btl_zmq.listener import Listener
from ompy_btl_zmq.monitor import Callers, ConnectionMonitor
from ompy_btl_zmq.security import Authenticator, Circles, Identities, scheme

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ompy.core.circle import Circle

NOBLOCK = zmq.NOBLOCK
FIRST_OF_TWO = zmq.NOBLOCK | zmq.SNDMORE
HANDSHAKE_ROOM = 1024  # bytes beyond `max_send_size` that a message may have: the tag, and what curve adds
GOODBYE = b""
NOBODY = b"\x03"  # as which the listening socket presents itself: no rank asks who is behind an address


class ZmqBtl(Btl):
    """TCP to every peer that can be reached.

    Parameters:
        rte: this process's place in its job.
        value: gives the component's parameters by short name.
        link: which of `btl_zmq_links` to each peer it is; peers are met at the same one of theirs.

    Errors: OSError when there is nowhere to listen, in words for people.
    """

    def __init__(self, rte: Rte, value: Callable[[str], Any], link: int = 0) -> None:
        self.name = f"zmq{link}" if link else "zmq"
        self.flags = SEND | IN_ORDER | ASYNCHRONOUS | RENEWAL
        self.max_send_size = value("max_send_size")
        self.eager_limit = self.rndv_eager_limit = min(value("eager_limit"), self.max_send_size)
        self.latency = 40000
        self.bandwidth = 5000
        self.exclusivity = 10
        self.kept_memory = value("kept_memory")
        self.connect_timeout = value("connect_timeout") / 1000
        self.linger = value("linger")
        self.counters["unauthenticated messages dropped"] = 0
        self.counters["connections made"] = 0
        self.counters["times accepting was paused"] = 0
        self.counters["sends held back"] = 0
        self.callers = Callers()
        self.quiet = False
        self.held_back = False
        self.closed = False
        self.endpoints: dict[bytes, ZmqEndpoint] = {}  # by the peer's identity
        self.peers_by_url: dict[str, ZmqEndpoint] = {}
        self.senders: dict[bytes, ZmqEndpoint | None] = {}  # identities that have sent us something
        self.departed: set[bytes] = set()
        self.unanswered: list[ZmqEndpoint] = []
        self.suspects: list[ZmqEndpoint] = []
        self.handshakes = value("handshakes")
        self.circles = Circles(Identities(rte.secret, rte.job, rte.rank, rte.size))
        self.security = scheme(value("security"), self.circles)
        self.congestion = CongestionControl(value("congestion_control"), "btl_zmq_congestion_control")
        host = choose(value("interface"), rte.is_on_one_host, link)
        backlog = max(128, rte.size)
        listening, self.url = listen(host, value("port_min"), value("port_range"), rte.local_rank, backlog)
        self.listener = Listener(listening)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self.open(rte, value)
        except OSError:
            self.listener.close()
            self.context.destroy(linger=0)
            raise
        transports.add(self)

    def open(self, rte: Rte, value: Callable[[str], Any]) -> None:
        """Make the sockets and let callers in."""
        self.congestion.prepare(self.listener.socket)
        self.socket = self.context.socket(zmq.ROUTER)
        for option, setting in (
            (zmq.ROUTING_ID, NOBODY),
            (zmq.IPV6, int("[" in self.url)),
            (zmq.ROUTER_MANDATORY, 1),
            # A peer that makes contact anew is let in before the old connection is known to have ended.
            (zmq.ROUTER_HANDOVER, 1),
            (zmq.SNDHWM, value("high_water_mark")),
            (zmq.RCVHWM, value("high_water_mark")),
            (zmq.MAXMSGSIZE, self.max_send_size + HANDSHAKE_ROOM),
            (zmq.HANDSHAKE_IVL, value("handshake_timeout")),
            (zmq.RECONNECT_IVL, 50),
            (zmq.RECONNECT_IVL_MAX, 1000),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 10),
            (zmq.TCP_KEEPALIVE_INTVL, 5),
            # Of connections that peers made: what would still go to one that has left, a goodbye, need not wait for it.
            (zmq.LINGER, 0),
        ):
            self.socket.setsockopt(option, setting)
        self.authenticator = Authenticator(self.context, self.security)
        self.monitor = ConnectionMonitor(self.context, self.socket)
        self.security.guard(self.socket)
        self.socket.setsockopt(zmq.USE_FD, self.listener.hand_over())
        self.socket.bind(self.url)
        self.socket.setsockopt(zmq.LINGER, self.linger)
        self.watched = epoll()
        self.socket_number = int(self.socket.getsockopt(zmq.FD))
        self.control = {int(socket.getsockopt(zmq.FD)) for socket in (self.authenticator.socket, self.monitor.socket)}
        for number in (self.socket_number, *self.control):
            self.watched.register(number, EPOLLIN)
        self.attend()  # descriptors become readable only after a look that found nothing

    # -- peers

    def address(self) -> bytes:
        return pack(Card(self.url, self.security.name, self.security.key))

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | str]:
        return [self.reach(proc) for proc in procs]

    def reach(self, proc: Proc) -> ZmqEndpoint | str:
        """An endpoint for a peer, or why there is none."""
        if proc.is_self:
            return "a process needs no network to reach itself; btl self does"
        if self.name not in proc.card:
            return f"rank {proc.rank} did not open {self.name}; `--mca btl_base_verbose 1` shows why, or btl_zmq_links"
        try:
            card = unpack(proc.card[self.name])
        except ValueError as error:
            return f"rank {proc.rank} has a card that can't be read: {error}"
        if card.security != self.security.name:
            return f"btl_zmq_security is {card.security} on rank {proc.rank} and {self.security.name} here"
        if is_loopback(card.url) and not proc.is_local:
            return f"rank {proc.rank} on {proc.host} listens on {card.url}, which is its own host's; set btl_zmq_interface"
        identity = self.circles.of(proc.circle).of(proc.number)
        endpoint = self.endpoints.get(identity)
        if endpoint is None:
            endpoint = self.endpoints[identity] = self.peers_by_url[card.url] = ZmqEndpoint(self, proc, card, identity)
            endpoint.departed = identity in self.departed
            if identity in self.senders:
                self.senders[identity] = endpoint
        return endpoint

    def del_procs(self, endpoints: Sequence[Endpoint]) -> int:
        for endpoint in endpoints:
            assert isinstance(endpoint, ZmqEndpoint)
            if self.endpoints.pop(endpoint.identity, None) is None:
                continue
            del self.peers_by_url[endpoint.card.url]
            endpoint.departed = True
            if endpoint.connected:
                self.socket.disconnect(endpoint.card.url)
                self.quiet = False
            if endpoint.identity in self.senders:
                self.senders[endpoint.identity] = None
        return 0

    def renew(self, endpoint: Endpoint) -> int:
        assert isinstance(endpoint, ZmqEndpoint)
        if endpoint.connected:
            # A connection that lingers would call again for what it still has, and the peer would take it for the latest: it
            # then reads nothing more of the one that is made now.
            self.socket.setsockopt(zmq.LINGER, 0)
            with contextlib.suppress(zmq.ZMQError):  # which has given it up itself
                self.socket.disconnect(endpoint.card.url)
            self.socket.setsockopt(zmq.LINGER, self.linger)
            self.quiet = False
        for some in (self.unanswered, self.suspects):
            if endpoint in some:
                some.remove(endpoint)
        endpoint.begin()
        return 0

    def serves_other_jobs(self) -> bool:
        return True

    def remark(self) -> str:
        return "encrypted by CURVE" if self.security.name == "curve" else ""

    def admit(self, circle: Circle) -> None:
        self.circles.add(circle)

    def dismiss(self, circle: Circle) -> None:
        beginning = self.circles.remove(circle)
        for identity in [identity for identity in self.senders if identity.startswith(beginning)]:
            self.part_from(identity)
            del self.senders[identity]
        self.departed = {identity for identity in self.departed if not identity.startswith(beginning)}

    def connect(self, endpoint: ZmqEndpoint) -> None:
        """Ask for the connection."""
        if self.kept_memory and not self.counters["connections made"]:
            keep_freed(2 * self.max_send_size, self.kept_memory)
        identities = self.circles.of(endpoint.proc.circle)
        identity = identities.towards(endpoint.proc.number)
        self.security.introduce(self.socket, identities, identity, endpoint.card.key)
        self.socket.setsockopt(zmq.ROUTING_ID, identity)
        self.socket.setsockopt(zmq.CONNECT_ROUTING_ID, endpoint.name)
        self.socket.connect(endpoint.card.url)
        endpoint.connected = True
        self.quiet = False
        self.expect(endpoint)
        self.counters["connections made"] += 1

    def expect(self, endpoint: ZmqEndpoint) -> None:
        """Somebody is to answer in time."""
        endpoint.deadline = time.monotonic() + self.connect_timeout
        if endpoint not in self.unanswered:
            self.unanswered.append(endpoint)

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"connections rejected": self.callers.rejected}

    # -- messages

    def alloc(self, endpoint: Endpoint, size: int) -> Descriptor | None:
        descriptor = super().alloc(endpoint, size + 1)
        if descriptor is not None:
            descriptor.length = size
        return descriptor

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        assert isinstance(endpoint, ZmqEndpoint)
        if endpoint in self.suspects:
            return BACK_PRESSURE  # until whoever sends has been told
        if endpoint.failure is not None or endpoint.departed:
            descriptor.complete(ERR_PROC_FAILED)
            return TAKEN
        length = descriptor.length
        try:
            if not endpoint.established:
                # What ZeroMQ keeps for a peer that never lets us in is lost without a word, so it is given nothing before.
                if not endpoint.connected:
                    self.connect(endpoint)
                return BACK_PRESSURE
            self.quiet = False
            self.socket.send(endpoint.name, FIRST_OF_TWO)
            descriptor.length = length + 1
            message = descriptor.view
            message[length] = tag
            self.socket.send(message, NOBLOCK)
        except zmq.Again:
            self.held_back = True
            self.counters["sends held back"] += 1
            return BACK_PRESSURE
        except zmq.ZMQError as error:
            self.suspect(endpoint, f"sending failed: {error.strerror}")
            return BACK_PRESSURE
        finally:
            descriptor.length = length
        descriptor.complete()
        return TAKEN

    def progress(self) -> int:
        """Take at most one message; see to connections.

        After a look that found nothing (`quiet`) ZeroMQ makes its descriptors readable when there is more, and asking
        them costs a tenth of looking.
        """
        events = 0
        message = None
        try:
            ready = {number for number, _ in self.watched.poll(0)}
            if ready & self.control:
                events += self.attend()
            if self.unanswered:
                self.give_up()
            if self.socket_number in ready and self.held_back:
                # It may be room at a peer: whoever was held back should try again before anybody sleeps.
                self.held_back = False
                events += 1
            if not self.quiet or self.socket_number in ready or self.suspects:
                identity = self.socket.recv(NOBLOCK)
                message = self.socket.recv(NOBLOCK, copy=False)
                self.quiet = False
                if message.more:
                    self.drop_rest()
                    message = None
        except zmq.Again:
            self.quiet = True
        if message is not None:
            self.arrived(identity, message.buffer)
            events += 1
        elif self.suspects and self.quiet:
            self.accuse()
        return events

    def drop_rest(self) -> None:
        """Read to its end what no rank can have sent."""
        self.counters["unauthenticated messages dropped"] += 1
        while self.socket.recv(NOBLOCK, copy=False).more:
            pass

    def arrived(self, identity: bytes, message: memoryview) -> None:
        """Hand a message to the receiver of its tag."""
        try:
            endpoint = self.senders[identity]
        except KeyError:
            if identity in self.endpoints:
                endpoint = self.senders[identity] = self.endpoints[identity]
            elif self.circles.prove(identity) is not None:
                endpoint = self.senders[identity] = None
            else:
                endpoint = self.connection_named(identity)
                if endpoint is None or len(message):
                    self.counters["unauthenticated messages dropped"] += 1
                    return
        if len(message):
            self.deliver_view(message[-1], endpoint, message[:-1])
        elif endpoint is None:
            self.departed.add(identity)
        else:
            endpoint.departed = True

    def connection_named(self, name: bytes) -> ZmqEndpoint | None:
        """The peer of a connection that we made; all that comes over one is the peer's goodbye."""
        for endpoint in self.endpoints.values():
            if endpoint.name == name:
                return endpoint
        return None

    # -- waiting

    def descriptor(self) -> int:
        return self.watched.fileno()

    def may_sleep(self) -> bool:
        return self.quiet and not self.suspects

    # -- connections

    def attend(self) -> int:
        """Answer callers, and read what became of the connections; returns the number of events."""
        events = self.authenticator.answer()
        for event, value, url in self.monitor.events():
            events += 1
            if event in (zmq.EVENT_ACCEPTED, zmq.EVENT_CONNECTED):
                self.pace(value)
            if url == self.url:
                self.callers.follow(event, value)
            elif (endpoint := self.peers_by_url.get(url)) is not None:
                self.follow(endpoint, event, value)
        self.bound_handshakes()
        return events

    def pace(self, connection: int) -> None:
        """Of a connection that ZeroMQ has made, and may have closed since."""
        with contextlib.suppress(OSError):
            link = Socket(fileno=connection)
            try:
                self.congestion.settle(link)
            finally:
                link.detach()

    def bound_handshakes(self) -> None:
        """Accept nobody while too many have not shown who they are."""
        waiting = self.callers.waiting()
        if waiting > self.handshakes and self.listener.shut():
            self.counters["times accepting was paused"] += 1
        elif waiting <= self.handshakes // 2:
            self.listener.open()

    def follow(self, endpoint: ZmqEndpoint, event: int, value: int) -> None:
        """One step of a connection that we made."""
        if event == zmq.EVENT_CONNECTED:
            endpoint.deadline = 0.0
            endpoint.connection = value
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            endpoint.established = True
        elif event == zmq.EVENT_DISCONNECTED and value == endpoint.connection:
            if endpoint.established:
                self.suspect(endpoint, "the connection broke")
            else:
                self.expect(endpoint)  # ZeroMQ calls again by itself
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self.suspect(endpoint, f"it refused our credentials (status {value}): the ranks do not share one job's secret")

    def give_up(self) -> None:
        """Stop waiting for peers whose address nobody answers at."""
        self.unanswered = [endpoint for endpoint in self.unanswered if endpoint.deadline]
        now = time.monotonic()
        for endpoint in self.unanswered:
            if now > endpoint.deadline:
                endpoint.deadline = 0.0
                waited = f"nobody answered for {self.connect_timeout:g} s (btl_zmq_connect_timeout)"
                self.suspect(endpoint, f"{waited}; check btl_zmq_interface on its host, and the firewall between")

    def suspect(self, endpoint: ZmqEndpoint, reason: str) -> None:
        if endpoint.failure is None and not endpoint.departed:
            proc = endpoint.proc
            where = f"rank {proc.rank} (host {proc.host}, pid {proc.pid}) at {endpoint.card.url}"
            endpoint.failure = MPIError(ERR_PROC_FAILED, f"btl {self.name} lost {where}: {reason}")
            self.suspects.append(endpoint)

    def accuse(self) -> None:
        """Report lost peers, once everything that they had sent is read and no goodbye was in it."""
        suspects, self.suspects = self.suspects, []
        for endpoint in suspects:
            if endpoint.departed:
                endpoint.failure = None
            elif endpoint.failure is not None:
                self.report_error(endpoint.proc, endpoint.failure)

    # -- the end

    def part_from(self, identity: bytes) -> None:
        """Say goodbye to one that has connected to us."""
        self.quiet = False
        try:
            self.socket.send(identity, FIRST_OF_TWO)
            self.socket.send(GOODBYE, NOBLOCK)
        except zmq.ZMQError:
            pass  # it has gone already, or does not listen: it needs no goodbye

    def finalize(self) -> int:
        if self.closed:
            return 0
        self.closed = True
        transports.discard(self)
        for identity in self.senders:
            self.part_from(identity)
        self.watched.close()
        self.monitor.close()
        self.authenticator.close()
        self.listener.close()
        self.context.destroy(linger=self.linger)
        return 0
