# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The peers of a process, and the connections to them; see `peers.pxd`."""
import os
from _socket import IPPROTO_TCP, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, TCP_NODELAY
from select import POLLIN, poll
from socket import socket as Socket
from time import monotonic

from libc.errno cimport EBADF, EPROTO
from libc.string cimport memset

from ompy.core.congestion import CongestionControl
from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc cimport Proc
from ompy.mca.btl cimport Descriptor, Endpoint
from ompy_btl_tcp.connection cimport Connection, Outgoing
from ompy_btl_tcp.endpoint cimport TcpEndpoint
from ompy_btl_tcp.frame cimport FRAME_GOODBYE, Frame, PutFrame
from ompy_btl_tcp.poller cimport Poller
from ompy_btl_tcp.wire cimport ENDED, drop, end_of_sending, forget, lock, pull, unacknowledged, unlock, watch

from ompy_btl_tcp.call import CLOSED, Call
from ompy_btl_tcp.card import Card, Way, candidates, pack, unpack
from ompy_btl_tcp.handshake import TWICE, WELCOME, Answerer, beginning, name_of
from ompy_btl_tcp.inheritance import transports
from ompy_btl_tcp.interfaces import choose
from ompy_btl_tcp.options import bound_buffers, keep_alive
from ompy_btl_tcp.reception import Reception, listen

# Seconds, by which a peer's host that is cut off is noticed; see `options.keep_alive`.
KEEPALIVE = (10, 5)


cdef class Peers(Poller):
    """Every peer that can be reached, each by one connection.

    Parameters:
        rte: this process's place in its job.
        value: gives the component's parameters by short name.

    Errors: OSError when there is nowhere to listen, in words for people.
    """

    def __init__(self, rte, value):
        self.settings = {name: value(name) for name in (
            "connect_timeout", "handshake_timeout", "handshakes", "linger", "send_queue", "sndbuf", "rcvbuf", "security")}
        self.congestion = CongestionControl(value("congestion_control"), "btl_tcp_congestion_control")
        self.is_open = value("security") == "none"
        self.protection = protection_of(value)
        self.job, self.rank = rte.job, rte.rank
        self.secrets = {name_of(rte.job, rte.rank): b"" if self.is_open else rte.secret}
        self.endpoints, self.connections = {}, {}
        self.calls, self.calls_by_number, self.gone = {}, {}, {}
        self.own_interfaces = choose(value("if_include"), value("if_exclude"), rte.is_on_one_host)
        listening = []
        try:
            for it in self.own_interfaces:
                listening.append(listen(it, value("port_min"), value("port_range"), rte.local_rank, max(128, rte.size)))
            for link, _ in listening:
                bound_buffers(link, self.settings)
                self.congestion.prepare(link)
            Poller.__init__(self)
        except OSError:
            for link, _ in listening:
                link.close()
            raise
        self.card = Card(value("security"), value("max_send_size"), tuple(address for _, address in listening))
        self.has_clock = False
        self.reception = Reception(listening, self.answerer, self.settings["handshakes"],
                                   self.settings["handshake_timeout"] / 1000, self.watch_reading, self.forget_number,
                                   self.hang_up)
        transports.add(self)

    def descriptors(self):
        """Every descriptor that this transport has open."""
        if self.closed:
            return []
        calls = [call.link.fileno() for call in self.calls.values() if call.link is not None]
        return [self.watched.epoll, *self.reception.links, *self.reception.callers, *self.by_number, *calls]

    # -- who they are

    cpdef bytes address(self):
        return pack(self.card)

    cpdef list add_procs(self, list procs):
        return [self.reach(proc) for proc in procs]

    def reach(self, Proc proc):
        """An endpoint for a peer, or why there is none."""
        if proc.is_self:
            return "a process needs no network to reach itself; btl self does"
        if "tcp" not in proc.card:
            return f"rank {proc.rank} did not open tcp; `--mca btl_base_verbose 1` shows why"
        try:
            card = unpack(proc.card["tcp"])
        except ValueError as error:
            return f"rank {proc.rank} has a card that can't be read: {error}"
        for name, theirs, ours in (("security", card.security, self.card.security),
                                   ("max_send_size", card.largest, self.card.largest),
                                   ("failover_window", card.window, self.card.window)):
            if bool(theirs) != bool(ours):
                return f"rank {proc.rank} and this one differ in btl_tcp_links above 1 or btl_tcp_failover_timeout"
            if theirs != ours:
                return f"btl_tcp_{name} is {theirs} on rank {proc.rank} and {ours} here"
        addresses = candidates(card, self.own_interfaces, proc.is_local)
        if not addresses:
            where = ", ".join(map(str, card.addresses))
            return f"rank {proc.rank} on {proc.host} listens on {where}, which is this host too; set btl_tcp_if_include"
        if proc.circle is None:
            name, me = name_of(proc.job, proc.rank), name_of(self.job, self.rank)
        else:
            name, me = name_of(proc.circle.name, proc.number), name_of(proc.circle.name, proc.circle.me)
        if name not in self.endpoints:
            self.endpoints[name] = self.meet(proc, name, me, card, addresses)
        return self.endpoints[name]

    def meet(self, Proc proc, bytes name, bytes me, card, addresses):
        """An endpoint for a peer that has none, but perhaps a connection."""
        cdef TcpEndpoint endpoint = TcpEndpoint(self, proc, name, me, addresses)
        cdef Connection connection = self.connections.get(name)
        if connection is not None:
            connection.endpoint = endpoint
            endpoint.connection = connection
        elif name in self.gone:
            endpoint.failure = lost(proc, "", self.gone.pop(name))
        return endpoint

    cpdef int del_procs(self, list endpoints) except -1:
        cdef TcpEndpoint endpoint
        for endpoint in endpoints:
            if self.endpoints.get(endpoint.name) is not endpoint:
                continue
            del self.endpoints[endpoint.name]
            self.end_call(endpoint.name)
            if endpoint.connection is not None:
                endpoint.connection.endpoint = None
                endpoint.connection = None
            endpoint.failure = lost(endpoint.proc, "", "contact was given up")
        return 0

    cpdef int renew(self, Endpoint endpoint) except -1:
        cdef TcpEndpoint peer = <TcpEndpoint?> endpoint
        cdef Connection connection = peer.connection
        self.end_call(peer.name)
        if connection is not None:
            lock(&self.watched.busy)
            try:
                self.close_connection(connection)
            finally:
                unlock(&self.watched.busy)
            self.abandon_queue(connection)
        peer.failure = None
        return 0

    def serves_other_jobs(self):
        """Each meeting has a secret of its own."""
        return True

    def remark(self):
        if self.protection is None:
            return ""
        return "encrypted by TLS 1.3" + (", AEGIS-128L" if self.protection.ciphers else "")

    def admit(self, circle):
        self.secrets[name_of(circle.name, circle.me)] = b"" if self.is_open else circle.secret

    def dismiss(self, circle):
        cdef Connection connection
        del self.secrets[name_of(circle.name, circle.me)]
        start = beginning(circle.name)
        for connection in [self.connections[name] for name in self.connections if name.startswith(start)]:
            self.part(connection)
        for name in [name for name in self.gone if name.startswith(start)]:
            del self.gone[name]

    # -- what is ready

    cdef int attend_one(self, int number, bint readable, bint writable) except -1:
        cdef Connection connection = self.by_number.get(number)
        cdef int events = 0
        if connection is not None:
            if writable:
                events += self.flush_queue(connection)
            if readable:
                if not connection.wire.fresh:
                    pull(&connection.wire)
                if not connection.is_hot:
                    self.poll_directly(connection)
                    self.watched.in_vain = 0
                if connection.wire.fresh:
                    events += self.consume(connection)
        elif number in self.calls_by_number:
            events += self.go_on_calling(self.calls_by_number[number])
        elif number in self.reception.callers:
            conversation = self.reception.advance(number)
            if conversation is not None:
                events += self.establish(conversation.link, conversation.peer, conversation)
        elif number in self.reception.links:
            self.reception.accept(number)
        return events

    cdef int attend_waiting(self) except -1:
        """What no descriptor tells of, but the clock; the number of events."""
        if self.has_clock or self.calls or self.reception.callers or self.reception.rests_until:
            return self.look_at_clock()
        return 0

    cdef int look_at_clock(self) except -1:
        cdef int events = 0
        cdef double now = monotonic()
        self.reception.look_at_clock(now)
        for name, call in list(self.calls.items()):
            if self.calls.get(name) is call and call.look_at_clock(now):     # whoever heard of another one may have ended it
                events += self.called_on(name, call)
        return events

    # -- connections

    def open_link(self, int family):
        """A socket for a call, which is watched."""
        link = Socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
        bound_buffers(link, self.settings)
        self.congestion.prepare(link)
        # TLS says two things one after the other: the second one would wait for the first one's being acknowledged, 40 ms.
        link.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        keep_alive(link, *KEEPALIVE)             # a host that is lost after it has answered the network's connect
        watch(self.watched.epoll, link.fileno(), True, True)
        return link

    def hang_up(self, link):
        """Close a socket that is no connection yet."""
        self.forget_number(link.fileno())
        self.calls_by_number.pop(link.fileno(), None)
        try:
            link.close()
        except OSError:
            pass                                 # the program has

    def answerer(self, link):
        return Answerer(link, self.secrets, self.judge, self.protection)

    def judge(self, conversation):
        """The verdict on a connection that a peer has made; see `handshake.py`."""
        name = conversation.peer
        call = self.calls.get(name)
        if name in self.connections or (call is not None and call.is_talking and conversation.me < name):
            return TWICE
        return WELCOME

    cdef int unready(self, TcpEndpoint endpoint) except -1:
        """No connection stands: OK when there is a failure instead, else one is on its way."""
        if endpoint.failure is not None:
            return OK
        if endpoint.name not in self.calls:
            ways = [Way("", address) for address in endpoint.addresses]
            call = Call(self.open_link, self.hang_up, ways, self.secrets[endpoint.me], endpoint.me, endpoint.name,
                        self.settings["connect_timeout"] / 1000, protection=self.protection)
            self.calls[endpoint.name] = call
            self.called += 1
            self.called_on(endpoint.name, call)
        return OUT_OF_RESOURCE

    def go_on_calling(self, key):
        call = self.calls[key]
        if not call.advance():
            return self.called_on(key, call)
        link = call.link
        self.calls_by_number.pop(link.fileno(), None)
        del self.calls[key]
        return self.establish(link, call.peer, call)

    def called_on(self, name, call):
        """A call has gone on, and perhaps to another address; the number of events."""
        cdef TcpEndpoint endpoint
        if call.failure:
            del self.calls[name]
            endpoint = self.endpoints[name]
            endpoint.failure = lost(endpoint.proc, "", f"{call.failure} (btl_tcp_connect_timeout, btl_tcp_if_include)")
            self.report_error(endpoint.proc, endpoint.failure)
            return 1
        self.follow(name, call)
        return 0

    def follow(self, key, call):
        """What comes over the link of a call is its."""
        if call.link is not None:
            self.calls_by_number[call.link.fileno()] = key
            if call.is_talking:
                watch(self.watched.epoll, call.link.fileno(), False, False)

    def end_call(self, key):
        call = self.calls.pop(key, None)
        if call is not None:
            call.hang_up()

    def establish(self, link, bytes name, how):
        """A connection whose two ends have proved themselves, as `how` has it: a call, or the conversation with a caller."""
        cdef Connection connection
        cdef TcpEndpoint endpoint = self.endpoints.get(name)
        if name in self.connections:
            self.hang_up(link)
            return 0
        try:
            where = "{}:{}".format(*link.getpeername()[:2])
            keep_alive(link, *KEEPALIVE)
            self.congestion.settle(link)
        except OSError:
            self.hang_up(link)                   # it has been reset meanwhile: who has something to send calls again
            return 0
        self.end_call(name)
        self.gone.pop(name, None)
        connection = Connection(link.detach(), name, where, self.max_send_size, self.settings["send_queue"], self.done)
        if how.channel is not None:
            connection.protect(how.channel)
        self.connections[name] = self.by_number[connection.wire.number] = connection
        watch(self.watched.epoll, connection.wire.number, False, False)
        if endpoint is not None:
            connection.endpoint = endpoint
            endpoint.connection = connection
            endpoint.failure = None
        self.poll_directly(connection)
        return 1

    cdef int close_connection(self, Connection connection) except -1:
        cdef TcpEndpoint endpoint = connection.endpoint
        self.leave_to_epoll(connection)
        if connection.gathers:
            self.gathering.remove(connection)
        if connection.queued and not connection.is_broken:
            self.watched.writers -= 1
        forget(self.watched.epoll, connection.wire.number)
        if connection.wire.over != EBADF:        # else the program has closed it
            os.close(connection.wire.number)
        del self.by_number[connection.wire.number]
        del self.connections[connection.name]
        if endpoint is not None:
            endpoint.connection = None
        return 0

    cdef int abandon_queue(self, Connection connection) except -1:
        """What waits in the queue has failed."""
        cdef Outgoing item
        for item in connection.queue:
            if item.descriptor is not None:
                self.refuse(item.descriptor)
        connection.queue.clear()
        connection.queued = 0
        return 0

    cdef int lose(self, Connection connection) except -1:
        """The connection is over, and all that came by it has been looked at."""
        cdef TcpEndpoint endpoint = connection.endpoint
        cdef int over = connection.wire.over
        self.close_connection(connection)
        self.abandon_queue(connection)
        if connection.departed:
            reason = "it has left"
        elif over == EBADF:
            reason = CLOSED
        else:
            reason = reason_of(over)
        if endpoint is None:
            if not connection.departed and not connection.is_over:
                self.gone[connection.name] = reason
            return 1
        endpoint.failure = lost(endpoint.proc, connection.where, reason)
        if not connection.departed:
            self.report_error(endpoint.proc, endpoint.failure)
        return 1

    # -- frames

    cdef int hand_over(self, Connection connection, PutFrame *head, size_t head_size, const char *data, size_t size,
                       const char *payload, size_t payload_size, Descriptor descriptor, bint must=False,
                       bint later=False) except -1:
        cdef bint queued = connection.queued > 0
        if connection.send(head, head_size, data, size, payload, payload_size, descriptor, must, later) != OK:
            self.refused += 1
            if connection.is_broken and not connection.is_hot:
                self.poll_directly(connection)            # epoll knows nothing of a socket that the program has closed
            return OUT_OF_RESOURCE
        self.sent += 1
        self.bytes_sent += head_size + size + payload_size
        if descriptor is not None:
            self.watched.work = True
        self.watched.in_vain = 0
        if not connection.is_hot:
            self.poll_directly(connection)
        if connection.queued and not queued:
            self.queue_begun(connection)
        return OK

    cdef int say(self, Connection connection, int kind) except -1:
        """A frame without payload, whether there is room or not."""
        cdef PutFrame head
        memset(&head, 0, sizeof(head))
        head.frame.kind = kind
        return self.hand_over(connection, &head, sizeof(Frame), NULL, 0, NULL, 0, None, True)

    cdef int part(self, Connection connection) except -1:
        """Say goodbye: once all has left, the peer finds the end, and closes its side as this one does when it finds that."""
        if not connection.is_over:
            self.say(connection, FRAME_GOODBYE)
            connection.is_over = True
            if connection.queued == 0:
                end_of_sending(connection.wire.number)
        return 0

    # -- the end

    cpdef int finalize(self) except -1:
        cdef Connection connection
        if self.closed:
            return 0
        end = monotonic() + self.settings["linger"] / 1000
        lock(&self.watched.busy)
        self.inside = True
        try:
            if self.departure is not None:
                self.depart()
            for connection in self.connections.values():
                self.part(connection)
            for connection in list(self.connections.values()):
                self.see_off(connection, end)
            self.closed = True
            transports.discard(self)
            for name in list(self.calls):
                self.end_call(name)
            self.reception.close()
            self.poller.close()
        finally:
            self.inside = False
            unlock(&self.watched.busy)
        while self.done:
            self.finish_done()
        return 0

    cdef int see_off(self, Connection connection, double end) except -1:
        """Let what was taken leave, and end the connection so that nothing of it is lost.

        To close a socket while something unread is in it resets the connection, and what is still on its way from here goes
        with it: so what comes is read until the peer has acknowledged everything.  It does so at once when it ends as well, for
        its own end of sending carries that; otherwise its system may take its time, 40 ms.
        """
        cdef int number = connection.wire.number
        waiter = poll()
        waiter.register(number, POLLIN)
        pause = 0.0
        while (connection.queued or unacknowledged(number)) and not connection.is_broken and monotonic() < end:
            if connection.queued:
                connection.flush()
                if connection.queued == 0:
                    end_of_sending(number)
            drop(&connection.wire)
            pull(&connection.wire)
            if connection.wire.over:
                break
            waiter.poll(pause)
            pause = min(pause + 0.1, 5)
        self.close_connection(connection)
        return self.abandon_queue(connection)


def reason_of(int over):
    """Why a connection ended, in words; `over` as in `Wire`."""
    if over == ENDED:
        return "the connection was closed"
    if over == EPROTO:
        return "what came was damaged or forged on its way"
    return os.strerror(over)


def protection_of(value):
    """What conversations, and the connections that they lead to, are protected by: a `Channel`, or None."""
    if value("security") != "tls":
        return None
    try:
        from ompy_btl_tcp.channel import channel_of
        return channel_of(value("cipher"), value("libcrypto"), value("libsodium"))
    except (ImportError, OSError) as error:
        raise OSError(f"btl_tcp_security tls: there is no TLS 1.3 here: {error}") from None


def lost(Proc proc, str where, str reason):
    at = f" at {where}" if where else ""
    return MPIError(ERR_PROC_FAILED, f"btl tcp lost rank {proc.rank} (host {proc.host}, pid {proc.pid}){at}: {reason}")
