# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""TCP with several links to a peer; see `bundled.pxd`."""
import os
from _socket import IPPROTO_TCP
from errno import EBADMSG, ETIMEDOUT
from select import POLLIN, poll
from socket import TCP_NOTSENT_LOWAT
from time import monotonic

from libc.errno cimport EBADF
from libc.stdint cimport int32_t, uint32_t, uint64_t

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_INTERN, MPIError
from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport goal
from ompy.mca.btl cimport FLAG_RENEWAL, Descriptor, Endpoint
from ompy_btl_tcp.bundle cimport FARTHEST, Bundle, Link
from ompy_btl_tcp.connection cimport Connection
from ompy_btl_tcp.endpoint cimport BundleEndpoint, TcpEndpoint
from ompy_btl_tcp.frame cimport FRAME_ACKNOWLEDGE, FRAME_DATA, FRAME_GOODBYE, FRAME_PUT, Frame, PutFrame
from ompy_btl_tcp.module cimport TcpBtl
from ompy_btl_tcp.poller cimport HOT
from ompy_btl_tcp.wire cimport forget, lock, silence, unlock, watch

from ompy_btl_tcp.call import Call
from ompy_btl_tcp.card import ways
from ompy_btl_tcp.handshake import OVER, TWICE, WELCOME, beginning, name_of
from ompy_btl_tcp.options import keep_alive
from ompy_btl_tcp.peers import lost, reason_of

# Frames of one link dealt with at a time.
cdef int BATCH = 64
# Bytes from twice of which a put is cut; and of what a link has that is not on its way yet, so that the others get theirs.
PIECE = 128 << 10
# Links of a bundle.
cdef enum:
    MOST_LINKS = 64
# Seconds between two looks at the links; before a link is called again that nobody answered for; before whoever has the higher
# name calls; and for which all must deny that a process is there.
cdef double LOOK = 0.05
cdef double PAUSE = 0.1
cdef double HESITATION = 0.5
cdef double DENIED = 1.0


cdef class BundledTcpBtl(TcpBtl):
    """TCP to every peer that can be reached, by several links or one that is made again.

    Parameters:
        rte: this process's place in its job.
        value: gives the component's parameters by short name.

    Errors: OSError when there is nowhere to listen, in words for people.
    """

    def __init__(self, rte, value):
        TcpBtl.__init__(self, rte, value)
        self.flags &= ~FLAG_RENEWAL              # it does that by itself; what it reports is final
        self.settings |= {name: value(name) for name in ("links", "failover_window", "link_timeout")}
        self.card = self.card._replace(window=value("failover_window"))
        self.bundles = {}
        self.ripe = set()
        self.most = value("links")
        self.patience = value("failover_timeout") / 1000
        self.longest_silence = value("link_timeout")
        self.has_clock = True

    # -- peers

    def meet(self, Proc proc, bytes name, bytes me, card, addresses):
        cdef BundleEndpoint endpoint
        cdef Bundle bundle = self.bundles.get(name)
        endpoint = BundleEndpoint(self, proc, name, me, addresses, ways(card, self.own_interfaces, proc.is_local))
        if bundle is not None:
            join(bundle, endpoint)
        elif name in self.gone:
            endpoint.failure = lost(proc, "", self.gone[name])
        return endpoint

    cpdef int del_procs(self, list endpoints) except -1:
        cdef BundleEndpoint endpoint
        for endpoint in endpoints:
            if self.endpoints.get(endpoint.name) is not endpoint:
                continue
            del self.endpoints[endpoint.name]
            if endpoint.bundle is not None:
                endpoint.bundle.endpoint = None
                endpoint.bundle = None
            endpoint.failure = lost(endpoint.proc, "", "contact was given up")
        return 0

    def dismiss(self, circle):
        cdef Bundle bundle
        del self.secrets[name_of(circle.name, circle.me)]
        start = beginning(circle.name)
        for bundle in [self.bundles[name] for name in self.bundles if name.startswith(start)]:
            self.say_goodbye(bundle)
        for name in [name for name in self.gone if name.startswith(start)]:
            del self.gone[name]

    cpdef dict statistics(self):
        cdef Bundle bundle
        cdef list bundles = list(self.bundles.values())
        cdef uint64_t links = 0, peers = 0, again = self.sent_again
        for bundle in bundles:
            links += len(bundle.links)
            peers += len(bundle.links) > 0
            again += bundle.sent_again
        return TcpBtl.statistics(self) | {
            "connections": peers, "links": links, "links_lost": self.links_lost, "sent_again": again,
        }

    # -- messages

    cdef int open_bundle(self, BundleEndpoint endpoint) except -1:
        """Make the first contact."""
        cdef Bundle bundle
        if endpoint.failure is not None:
            raise endpoint.failure
        bundle = Bundle(endpoint.name, endpoint.me, self.settings["failover_window"], self.settings["send_queue"], PIECE,
                        self.done, monotonic())
        self.bundles[endpoint.name] = bundle
        join(bundle, endpoint)
        self.call_link(bundle, 0)
        return 0

    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1:
        cdef BundleEndpoint peer = <BundleEndpoint> endpoint
        if peer.bundle is None:
            self.open_bundle(peer)
        if peer.bundle.send(FRAME_DATA, tag, header, header_size, payload, payload_size, False) != OK:
            self.refused += 1
            return OUT_OF_RESOURCE
        self.sent += 1
        self.bytes_sent += sizeof(Frame) + header_size + payload_size
        return self.update_links(peer.bundle)

    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1:
        if (<TcpEndpoint> endpoint).failure is not None:
            return self.refuse(descriptor)
        if self.sendi(endpoint, descriptor.data, descriptor.length, descriptor.payload, descriptor.payload_length, tag) != OK:
            return OUT_OF_RESOURCE
        self.done.append((descriptor, OK))
        self.watched.work = True
        return OK

    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1:
        cdef BundleEndpoint peer = <BundleEndpoint> endpoint
        if peer.failure is not None:
            return self.refuse(descriptor)
        if peer.bundle is None:
            self.open_bundle(peer)
        if peer.bundle.put(descriptor, int.from_bytes(descriptor.remote_handle, "little")) != OK:
            self.refused += 1
            return OUT_OF_RESOURCE
        self.sent += 1
        self.bytes_sent += sizeof(PutFrame) + descriptor.size
        self.bytes_put += descriptor.size
        return self.update_links(peer.bundle)

    cpdef int flush(self, Endpoint endpoint) except -1:
        cdef Bundle bundle
        if endpoint is not None:
            bundle = (<BundleEndpoint> endpoint).bundle
            return OUT_OF_RESOURCE if bundle is not None and bundle.puts else OK
        for bundle in self.bundles.values():
            if bundle.puts:
                return OUT_OF_RESOURCE
        return OK

    cdef int update_links(self, Bundle bundle) except -1:
        """Links were given something: room is to be told of where one is in the middle of a frame, and answers come soon."""
        cdef Link link
        cdef bint first = True
        for link in bundle.links.values():
            if link.awaits_room != (link.current is not None):
                link.awaits_room = not link.awaits_room
                self.watched.writers += 1 if link.awaits_room else -1
                watch(self.watched.epoll, link.wire.number, link.awaits_room, False)
            if not link.is_hot and (first or self.watched.hot_count < HOT):
                self.poll_directly(link)
            first = False
        self.watched.in_vain = 0
        if self.done:
            self.watched.work = True
        return 0

    cdef int flush_queue(self, Connection connection) except -1:
        """There is room in a link; the number of events."""
        cdef Link link = <Link> connection
        link.bundle.pump(link)
        self.update_links(link.bundle)
        return link.bundle.has_room_again()

    # -- what comes

    cpdef bint may_sleep(self) except -1:
        return not self.ripe and TcpBtl.may_sleep(self)

    cdef int work(self) except -1:
        cdef Bundle bundle
        cdef int events = 0
        for bundle in list(self.ripe):           # a receiver raised, and what was behind its message is left
            events += self.hand_over_early(bundle)
        return events + TcpBtl.work(self)

    cdef int consume(self, Connection connection) except -1:
        cdef Link link = <Link> connection
        cdef Bundle bundle = link.bundle
        cdef const Frame *frame
        cdef int events = 0
        while events < BATCH:
            frame = link.next_frame()
            if link.is_putting and link.wire.left == 0:
                self.take_arrived(link)
            if frame == NULL:
                link.wire.fresh = False
                break
            events += 1
            if not self.take(link, frame):
                link.wire.over = EBADMSG
                link.wire.fresh = False
                break
            if goal[0]:
                break                            # what is behind it can wait until the next look
        if bundle in self.ripe:
            events += self.hand_over_early(bundle)
        bundle.spread()
        self.update_links(bundle)
        events += bundle.has_room_again()
        if link.wire.over and not link.wire.fresh:
            events += self.lose(link)
        return events

    cdef bint take(self, Link link, const Frame *frame) except -1:
        """A frame that has come, but for what a put has behind it; False for one that nobody may send."""
        cdef Bundle bundle = link.bundle
        cdef const PutFrame *put = <const PutFrame *> frame
        cdef const char *data = <const char *> (frame + 1)
        cdef size_t length = frame.length
        cdef uint32_t sequence = frame.sequence
        cdef uint32_t distance = sequence - bundle.expected
        cdef bint is_known
        bundle.settle(frame.acknowledged)
        if frame.kind == FRAME_ACKNOWLEDGE:
            return True
        if frame.kind != FRAME_DATA and frame.kind != FRAME_PUT and frame.kind != FRAME_GOODBYE:
            return False
        is_known = <int32_t> distance < 0 or (distance > 0 and sequence in bundle.early)
        if not is_known and distance > 2 * FARTHEST:
            return False
        if is_known:
            bundle.must_tell = True
        elif frame.asks and <int32_t> (sequence + 1 - bundle.wanted) > 0:
            bundle.wanted = sequence + 1
        self.bytes_received += length + (sizeof(PutFrame) if frame.kind == FRAME_PUT else sizeof(Frame))
        if frame.kind == FRAME_PUT:
            if is_known:
                link.receive_put(NULL, 0, length)
                return True
            self.take_put(link, put.handle, put.address, length)
            link.is_putting = True
            link.arriving = sequence
        elif is_known:
            pass
        elif distance:
            bundle.early_bytes += length
            if bundle.early_bytes > bundle.window + self.max_send_size:
                return False
            bundle.early[sequence] = (frame.kind, frame.tag, data[:length])
        else:
            bundle.expected += 1
            if bundle.early:
                self.ripe.add(bundle)
            if frame.kind == FRAME_GOODBYE:
                bundle.departed = True
            else:
                self.hand_over_message(bundle, frame.tag, data, length)
        return True

    cdef int take_arrived(self, Link link) except -1:
        """All of a put is here."""
        cdef Bundle bundle = link.bundle
        cdef Link other
        # It may be coming by a link that the peer has given up, too: until now that wrote the same bytes.
        for other in bundle.links.values():
            if other.is_putting and other.arriving == link.arriving:
                other.is_putting = False
                other.wire.target = NULL
        if link.arriving == bundle.expected:
            bundle.expected += 1
        else:
            bundle.early[link.arriving] = None
        self.ripe.add(bundle)
        return 0

    cdef int hand_over_early(self, Bundle bundle) except -1:
        """What came before its turn, and has it now; the number of messages."""
        cdef int events = 0
        cdef bytes data
        while bundle.early and bundle.expected in bundle.early:
            message = bundle.early.pop(bundle.expected)
            bundle.expected += 1
            if message is None:
                continue
            kind, tag, data = message
            bundle.early_bytes -= len(data)
            if kind == FRAME_GOODBYE:
                bundle.departed = True
                continue
            events += 1
            self.hand_over_message(bundle, tag, <const char *> data, len(data))
        self.ripe.discard(bundle)
        return events

    cdef int hand_over_message(self, Bundle bundle, int tag, const char *data, size_t length) except -1:
        self.received += 1
        if self.is_closing:
            return 0
        if self.receivers[tag] is None:
            raise MPIError(ERR_INTERN, f"btl tcp got a message with tag {tag}, which nobody registered")
        return self.deliver(tag, <Endpoint> bundle.endpoint, data, length)

    # -- links

    def judge(self, conversation):
        cdef Bundle bundle = self.bundles.get(conversation.peer)
        if conversation.peer in self.gone:
            return OVER
        if conversation.number >= MOST_LINKS:
            return TWICE
        call = self.calls.get((conversation.peer, conversation.number))
        if call is not None and call.is_talking and conversation.me < conversation.peer:
            return TWICE
        if bundle is None:
            return WELCOME if conversation.turn == 0 else TWICE
        if conversation.number not in bundle.links or conversation.turn >= bundle.turns[conversation.number]:
            return WELCOME
        return TWICE

    def open_link(self, int family):
        link = TcpBtl.open_link(self, family)
        self.keep_alive(link)
        return link

    def keep_alive(self, link):
        """A peer's host that is cut off is noticed while nothing is sent, too."""
        keep_alive(link, 1, 1, max(2, (self.longest_silence + 999) // 1000))

    cdef int call_link(self, Bundle bundle, int number) except -1:
        if bundle.me not in self.secrets:
            return 0                             # the circle is dismissed
        some = bundle.ways[number::self.most] or [bundle.ways[number % len(bundle.ways)]]
        call = Call(self.open_link, self.hang_up, some, self.secrets[bundle.me], bundle.me, bundle.name,
                    len(some) * self.longest_silence / 1000, number, bundle.turns.get(number, 0), self.protection)
        self.calls[bundle.name, number] = call
        self.called += 1
        return self.called_on((bundle.name, number), call)

    def called_on(self, name, call):
        cdef Bundle bundle
        cdef double now
        if not call.failure:
            self.follow(name, call)
            return 0
        del self.calls[name]
        bundle = self.bundles[name[0]]
        bundle.last_failure = call.failure
        now = monotonic()
        bundle.next_call[name[1]] = now + PAUSE
        if not call.is_denied:
            bundle.denied_since = 0
        elif bundle.denied_since == 0:
            bundle.denied_since = now
        return 1

    def end_calls(self, bytes name):
        for key in [key for key in self.calls if key[0] == name]:
            self.end_call(key)

    def establish(self, link, bytes name, how):
        cdef Bundle bundle = self.bundles.get(name)
        cdef BundleEndpoint endpoint
        cdef Link made
        cdef int number = how.number
        try:
            where = "{}:{}".format(*link.getpeername()[:2])
            self.keep_alive(link)
            self.congestion.settle(link)
            if self.most > 1:
                link.setsockopt(IPPROTO_TCP, TCP_NOTSENT_LOWAT, PIECE)
        except OSError:
            self.hang_up(link)                   # it has been reset meanwhile
            return 0
        self.end_call((name, number))
        if bundle is None:
            bundle = self.bundles[name] = Bundle(name, how.me, self.settings["failover_window"], self.settings["send_queue"],
                                                 PIECE, self.done, monotonic())
            endpoint = self.endpoints.get(name)
            if endpoint is not None:
                join(bundle, endpoint)
        made = bundle.links.get(number)
        if made is not None:
            self.links_lost += 1                 # as the peer says
            self.close_link(made)
        made = Link(link.detach(), bundle, number, where, self.max_send_size, self.done)
        if how.channel is not None:
            made.protect(how.channel)
        self.by_number[made.wire.number] = made
        watch(self.watched.epoll, made.wire.number, False, False)
        if not bundle.turns:
            # Whoever began calls the others too.
            bundle.next_call = dict.fromkeys(range(self.most), 0.0 if isinstance(how, Call) else monotonic() + HESITATION)
        bundle.links[number] = made
        bundle.turns[number] = how.turn + 1      # as the peer has it, which may not have heard of one that stood here
        bundle.missing_since = bundle.denied_since = 0
        bundle.must_tell = True
        self.poll_directly(made)
        bundle.pump(made)
        self.update_links(bundle)
        return 1

    cdef int close_link(self, Link link) except -1:
        """What it had goes over others."""
        cdef Bundle bundle = link.bundle
        self.leave_to_epoll(link)
        if link.awaits_room:
            self.watched.writers -= 1
        forget(self.watched.epoll, link.wire.number)
        if link.wire.over != EBADF:              # else the program has closed it
            os.close(link.wire.number)
        del self.by_number[link.wire.number]
        del bundle.links[link.number]
        bundle.take_back(link)
        return 0

    cdef int lose(self, Connection connection) except -1:
        cdef Link link = <Link> connection
        cdef Bundle bundle = link.bundle
        cdef int over = link.wire.over
        cdef double now = monotonic()
        self.close_link(link)
        if over == EBADMSG:
            return self.give_up(bundle, f"{link.where} sent what is no frame", True)
        if bundle.links:
            bundle.spread()
            self.update_links(bundle)
        else:
            bundle.missing_since = now
        if bundle.departed:
            return 1 if bundle.links else self.give_up(bundle, "it has left", False)
        self.links_lost += 1
        bundle.last_failure = f"{link.where}: {reason_of(over)}"
        bundle.next_call[link.number] = now + (0 if bundle.me < bundle.name else HESITATION)
        if not bundle.links and self.patience == 0:
            return self.give_up(bundle, bundle.last_failure, True)
        return 1 + self.look_after(bundle, now)

    cdef int give_up(self, Bundle bundle, str reason, bint report) except -1:
        """Contact with a peer is over."""
        cdef BundleEndpoint endpoint = bundle.endpoint
        cdef Link link
        for link in list(bundle.links.values()):
            self.close_link(link)
        self.end_calls(bundle.name)
        for descriptor in bundle.abandon():
            self.refuse(descriptor)
        self.ripe.discard(bundle)
        self.sent_again += bundle.sent_again
        del self.bundles[bundle.name]
        if not bundle.departed and not bundle.is_over:
            self.gone[bundle.name] = reason
        if endpoint is not None:
            endpoint.bundle = None
            endpoint.failure = lost(endpoint.proc, "", reason)
            if report:
                self.report_error(endpoint.proc, endpoint.failure)
        return 1

    # -- time

    cdef int look_at_clock(self) except -1:
        cdef double now = monotonic()
        cdef int events = TcpBtl.look_at_clock(self)
        cdef Bundle bundle
        if now < self.next_look:
            return events
        self.next_look = now + LOOK
        for key, call in list(self.calls.items()):
            # Over a way that was cut in the middle of the handshake nothing will come.
            if call.is_talking and silence(call.link.fileno()) > self.longest_silence:
                if call.next_address("the connection is silent", False):
                    call.dial()
                events += self.called_on(key, call)
        for bundle in list(self.bundles.values()):
            if self.bundles.get(bundle.name) is bundle:
                events += self.look_after(bundle, now)
        return events

    cdef int look_after(self, Bundle bundle, double now) except -1:
        """Give silent links up, call those that are missing, and know when the peer is lost; the number of events."""
        cdef Link link
        cdef BundleEndpoint endpoint = bundle.endpoint
        cdef int number, events = 0
        cdef double patience = self.patience
        for link in list(bundle.links.values()):
            if link.is_broken or silence(link.wire.number) > self.longest_silence:
                link.wire.over = link.wire.over or ETIMEDOUT
                return self.lose(link)
        if bundle.is_over and not bundle.kept:
            return self.give_up(bundle, "contact was ended", False)
        if not bundle.links:
            if bundle.departed:
                return self.give_up(bundle, "it has left", False)
            # Whoever has answered the network's connect is alive, if perhaps computing.
            for number in range(self.most):
                call = self.calls.get((bundle.name, number))
                if call is not None and call.is_talking:
                    bundle.missing_since = now
            if not bundle.turns:
                patience = max(patience, self.settings["connect_timeout"] / 1000)
            if endpoint is not None and endpoint.proc.failure is not None:
                return self.give_up(bundle, "it has failed", False)
            if bundle.denied_since and now - bundle.denied_since > DENIED:
                return self.give_up(bundle, bundle.last_failure, True)
            if now - bundle.missing_since > patience:
                return self.give_up(bundle, f"out of reach for {patience:g} s (btl_tcp_failover_timeout, btl_tcp_if_include): "
                                            f"{bundle.last_failure}", True)
        if bundle.ways is None or bundle.departed or (endpoint is not None and endpoint.proc.failure is not None):
            return events
        for number in range(self.most):
            if number not in bundle.links and (bundle.name, number) not in self.calls \
                    and now >= bundle.next_call.get(number, 0):
                self.call_link(bundle, number)
        return events

    # -- the end

    cdef int say_goodbye(self, Bundle bundle) except -1:
        if not bundle.is_over:
            bundle.is_over = True
            bundle.send(FRAME_GOODBYE, 0, NULL, 0, NULL, 0, True)
            self.update_links(bundle)
        return 0

    cpdef int finalize(self) except -1:
        cdef Bundle bundle
        if self.closed:
            return 0
        end = monotonic() + self.settings["linger"] / 1000
        waiter = poll()
        waiter.register(self.watched.epoll, POLLIN)
        lock(&self.watched.busy)
        self.inside = self.is_closing = True
        try:
            for bundle in list(self.bundles.values()):
                if bundle.turns:
                    self.say_goodbye(bundle)
                else:
                    self.give_up(bundle, "this process has ended", False)
            # A bundle whose goodbye is acknowledged is given up by the clock, as one whose peer is lost.
            while self.bundles and monotonic() < end + (self.patience if self.is_cut_off() else 0):
                self.next_look = 0
                if self.look_at_hot() + self.attend() == 0:
                    waiter.poll(10)
            for bundle in list(self.bundles.values()):
                self.give_up(bundle, "this process has ended", False)
        finally:
            self.inside = False
            unlock(&self.watched.busy)
        return TcpBtl.finalize(self)

    def is_cut_off(self):
        """Whether a peer whose connections have ended may come back."""
        cdef Bundle bundle
        for bundle in self.bundles.values():
            if not bundle.links:
                return True
        return False


cdef int join(Bundle bundle, BundleEndpoint endpoint) except -1:
    """The PML knows the peer."""
    bundle.endpoint = endpoint
    bundle.ways = endpoint.ways
    endpoint.bundle = bundle
    return 0
