# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The channels to all peers; see `channels.pxd`."""
from libc.stdint cimport int32_t, uint32_t

from ompy.core.constants cimport OK, OUT_OF_RESOURCE
from ompy.core.errors import ERR_PROC_FAILED, MPIError
from ompy.core.proc cimport Proc
from ompy.core.clock cimport clock_now
from ompy.core.progress_source cimport exclude_watchers, register_source, unregister_source
from ompy.mca.btl cimport FLAG_RENEWAL
from ompy.mca.framed_btl cimport FramedBtl

from ompy_pml_dr.channel cimport NOWHERE, WINDOW, Channel, Packet
from ompy_pml_dr.path cimport Path

# So many later packets have arrived before one that has not counts as lost, rather than as late; so many in a row whose time
# was over make a path a silent one.
cdef int LATE = 3
cdef int64_t NEVER = 0x7FFFFFFFFFFFFFFF
cdef int64_t MILLISECOND = 1000000
# Before a lost path is renewed, and how much longer whoever hesitates waits; until it is asked again, and renewed again.
cdef int64_t PAUSE = 100 * MILLISECOND
cdef int64_t HESITATION = 500 * MILLISECOND
cdef int64_t ASK_AGAIN = 200 * MILLISECOND
cdef int64_t SILENCE = 2000 * MILLISECOND
# Until what found no room on a path is tried again.
cdef int64_t SOON = MILLISECOND


cdef bint is_due(void *context) noexcept nogil:
    return clock_now() >= (<int64_t *> context)[0]


cdef bint is_overtaken(Channel channel, const Packet *packet) noexcept:
    """Whether enough have arrived of what was sent later by the same path.

    By the order of sending, not by sequence numbers: what was sent again has lost nothing by packets from before that.

        sent 1 2 3 4      1 is lost, 2 3 4 arrive: 1 is overtaken, and sent again; what is heard of 2 3 4 later changes nothing
    """
    cdef uint32_t sequence = channel.oldest
    cdef int later = 0
    cdef const Packet *other
    while sequence != channel.next_sequence:
        other = &channel.packets[sequence % WINDOW]
        later += not other.waiting and other.path == packet.path and other.sent > packet.sent
        sequence += 1
    return later >= LATE


cdef class Channels(ProgressSource):
    """All channels of one process, and the BTLs that their paths lead over.

    Parameters:
        helper: a `Helper` to be stopped at the end, or None.
        ack_delay, timeout, ...: as the component's parameters say, times in milliseconds.
    """

    def __init__(self, helper=None, *, double ack_delay=1.0, double timeout=50.0, double timeout_min=10.0,
                 double timeout_max=1000.0, double failover_timeout=0.0, int retry_limit=300):
        self.helper = helper
        self.patience.first = <int64_t> (1e6 * timeout)
        self.patience.shortest = <int64_t> (1e6 * timeout_min)
        self.patience.longest = <int64_t> (1e6 * timeout_max)
        self.patience.ack_delay = <int64_t> (1e6 * ack_delay)
        self.patience.failover = <int64_t> (1e6 * failover_timeout)
        self.patience.retry_limit = retry_limit
        self.btls, self.busy = [], []
        self.by_peer = {}
        self.due = NEVER
        self.ready = is_due
        self.ready_context = &self.due

    def join(self, FramedBtl btl):
        """One more BTL; those that can stand in for one another have packets of one size."""
        self.btls.append(btl)
        sharers = [other for other in self.btls if (<FramedBtl> other).inner.flags & FLAG_RENEWAL]
        if btl in sharers:
            smallest = min([(<FramedBtl> other).max_send_size for other in sharers])
            for btl in sharers:
                btl.max_send_size = smallest
                btl.eager_limit = min(btl.eager_limit, smallest)
                btl.rndv_eager_limit = min(btl.rndv_eager_limit, btl.eager_limit)

    def statistics(self):
        """What is counted for all of them."""
        return {
            "packets_sent_again": self.sent_again,
            "acknowledgements_sent": self.acknowledgements,
            "peers_lost": self.peers_lost,
            "paths_lost": self.paths_lost,
            "paths_renewed": self.paths_renewed,
        }

    cdef Channel of(self, Proc proc):
        cdef Channel channel = self.by_peer.get((proc.job, proc.rank))
        if channel is None:
            channel = self.by_peer[proc.job, proc.rank] = Channel(proc)
            channel.timeout = self.patience.first
        return channel

    cdef int forget(self, Channel channel) except -1:
        """Contact is over; nothing is sent any more, and what comes is for nobody."""
        channel.lost = True
        channel.clear()
        self.by_peer.pop((channel.proc.job, channel.proc.rank), None)
        if channel.busy:
            channel.busy = False
            self.busy.remove(channel)
        return 0

    # -- packets

    cdef Path standing(self, Channel channel, int number, size_t length):
        """The first that stands after that number, and takes so long a packet; None: there is none."""
        cdef Path path
        cdef int count = len(channel.paths)
        cdef int step
        for step in range(1, count + 1):
            path = <Path> channel.paths[(number + step) % count]
            if not path.is_lost and path.has_room_for(length):
                return path
        return None

    cdef int dispatch(self, Channel channel, Packet *packet, Path path, int64_t now) except -1:
        cdef int taken
        if path is None or path.is_lost:
            path = self.standing(channel, NOWHERE if path is None else path.number, packet.length)
        if path is None:
            packet.path = NOWHERE
            channel.has_strays = True
            return OK
        try:
            taken = path.carry(packet, now)
        except MPIError as error:
            self.lose(path, error)
        if path.is_lost or channel.lost:
            return OK                                # its packets are taken care of together, this one among them
        if taken == OK:
            path.refuses_since = 0
            return OK
        return self.go_around(channel, packet, path, now)

    cdef int go_around(self, Channel channel, Packet *packet, Path path, int64_t now) except -1:
        """The path has refused; over another, if it has done nothing else for so long that it may be lost."""
        cdef Path other
        if path.refuses_since == 0:
            path.refuses_since = now
        if not path.can_renew():
            return OUT_OF_RESOURCE
        if now < path.refuses_since + self.patience.longest:
            self.watch(channel, path.refuses_since + self.patience.longest)
            return OUT_OF_RESOURCE
        self.stand_by(channel)
        other = self.standing(channel, path.number, packet.length)
        if other is None or other is path:
            return OUT_OF_RESOURCE
        if other.confirmed > path.refuses_since:
            self.lose(path, MPIError(ERR_PROC_FAILED, f"btl {path.btl.name} takes nothing"))
            return OK
        try:
            return other.carry(packet, now)
        except MPIError as error:
            self.lose(other, error)
        return OK

    cdef int repeat(self, Channel channel, Packet *packet, Path path, int64_t now) except -1:
        cdef int32_t before = packet.path
        packet.tries += 1
        if self.dispatch(channel, packet, path, now) != OK:
            packet.tries -= 1
            packet.path = before
            return OUT_OF_RESOURCE
        if not channel.lost and packet.path != NOWHERE:
            self.sent_again += 1
        return OK

    cdef int fill_gaps(self, Channel channel, int64_t now) except -1:
        """Send again what packets have overtaken that were sent after it, and were not after it was sent again."""
        cdef uint32_t sequence = channel.oldest
        cdef Packet *packet
        while sequence != channel.next_sequence:
            packet = &channel.packets[sequence % WINDOW]
            if packet.waiting and packet.path != NOWHERE and now - packet.sent > channel.round_trip + channel.variation and \
                    is_overtaken(channel, packet):
                self.repeat(channel, packet, <Path> channel.paths[packet.path], now)
            sequence += 1
        return 0

    cdef int send_strays(self, Channel channel, int64_t now) except -1:
        """Over whatever stands, as far as there is room."""
        cdef uint32_t sequence = channel.oldest
        cdef Packet *packet
        channel.has_strays = False
        while sequence != channel.next_sequence:
            packet = &channel.packets[sequence % WINDOW]
            if packet.waiting and packet.path == NOWHERE and self.repeat(channel, packet, None, now) != OK:
                channel.has_strays = True
                break
            sequence += 1
        if channel.bytes_under_way and channel.deadline == 0:
            channel.deadline = now + channel.timeout
        return 0

    cdef int acknowledge(self, Channel channel, int64_t now) except -1:
        """A frame without data, by the path that what it is for came by, if that stands."""
        cdef Path path = <Path> channel.paths[channel.debt_path]
        if path.is_lost:
            path = self.standing(channel, NOWHERE, 0)
        if path is None:
            channel.debt_due = now + PAUSE
            return 0
        try:
            if path.control(False, False, self.tag) == OK:
                self.acknowledgements += 1
        except MPIError as error:
            self.lose(path, error)
        return 0

    # -- paths

    cdef int heard(self, Path path, bint asks, bint answers, int64_t now) except -1:
        cdef Channel channel = path.channel
        if asks:
            path.owes_answer = True
            self.watch(channel, now)
        if answers and path.is_lost:
            path.is_lost = False
            path.misses = 0
            path.refuses_since = 0
            path.confirmed = now
            channel.stranded = 0
            self.paths_renewed += 1
            self.send_strays(channel, now)
            self.watch(channel, now)
        return 0

    cdef int lose(self, Path path, object error) except -1:
        cdef Channel channel = path.channel
        cdef int64_t now = clock_now()
        cdef uint32_t sequence = channel.oldest
        cdef Packet *packet
        if channel.lost:
            return 0
        if not path.can_renew():
            return self.give_up(channel, error)
        channel.error = error
        path.renew_at = now + PAUSE + (HESITATION if path.hesitates else 0)
        path.ask_at = 0
        path.owes_answer = False
        if path.is_lost:
            return self.watch(channel, path.renew_at)
        path.is_lost = True
        path.is_met = False
        self.paths_lost += 1
        while sequence != channel.next_sequence:
            packet = &channel.packets[sequence % WINDOW]
            if packet.waiting and packet.path == path.number:
                packet.path = NOWHERE
            sequence += 1
        self.stand_by(channel)
        if self.standing(channel, NOWHERE, 0) is None:
            if self.patience.failover == 0:
                return self.give_up(channel, error)
            channel.stranded = now
        self.send_strays(channel, now)
        return 0 if channel.lost else self.watch(channel, now)

    cdef int stand_by(self, Channel channel) except -1:
        """Ask every BTL that can renew contact for a path."""
        cdef Path path
        if channel.is_complete:
            return 0
        channel.is_complete = True
        known = [path.btl for path in channel.paths]
        for btl in self.btls:
            if btl not in known and (<FramedBtl> btl).inner.flags & FLAG_RENEWAL:
                btl.add_procs([channel.proc])
        return 0

    cdef int advance_path(self, Path path, int64_t now) except -1:
        """Answer, and try to have a lost path stand again; the number of events."""
        cdef int events = 0
        if path.owes_answer:
            path.owes_answer = False
            try:
                if path.control(path.is_lost, True, self.tag) != OK:
                    path.owes_answer = True
                elif path.is_lost and not path.is_met:
                    path.is_met = True
                    path.renew_at = now + SILENCE    # the peer has made contact, perhaps for both sides
            except MPIError as error:
                self.lose(path, error)
                path.renew_at = now                  # ... but not for this side
            events += 1
        try:
            if path.is_lost and now >= path.renew_at:
                (<FramedBtl> path.btl).renew(path)
                path.is_met = False
                path.renew_at = now + SILENCE
                path.ask_at = now
            if path.is_lost and path.ask_at and now >= path.ask_at:
                path.ask_at = now + (ASK_AGAIN if path.control(True, False, self.tag) == OK else SOON)
                events += 1
        except MPIError as error:
            self.lose(path, error)
            events += 1
        return events

    # -- progress

    cdef int watch(self, Channel channel, int64_t due) except -1:
        if not channel.busy:
            channel.busy = True
            if not self.busy:
                register_source(self)
            self.busy.append(channel)
        if due < self.due:
            self.due = due
        return 0

    cpdef int progress(self) except -1:
        cdef int64_t now = clock_now()
        cdef int64_t look
        cdef Channel channel
        cdef int events = 0
        if self.working or now < self.due:
            return 0
        self.working = True
        self.due = NEVER
        try:
            for channel in list(self.busy):
                events += self.attend(channel, now)
                look = self.next_look(channel)
                if look != NEVER:
                    self.due = min(self.due, look)
                elif channel.busy:
                    channel.busy = False
                    self.busy.remove(channel)
        except BaseException:
            self.due = now                           # for those that it has kept from their turn
            raise
        finally:
            self.working = False
        if not self.busy:
            unregister_source(self)
        return events

    cdef int64_t next_look(self, Channel channel) noexcept:
        cdef int64_t look = min(channel.deadline or NEVER, channel.debt_due or NEVER)
        cdef Path path
        if channel.lost:
            return NEVER
        if channel.has_strays and not channel.stranded:
            look = min(look, clock_now() + SOON)
        for path in channel.paths:
            if path.owes_answer:
                look = min(look, clock_now() + SOON)
            if path.is_lost:
                look = min(look, path.renew_at, path.ask_at or NEVER)
            elif path.refuses_since and clock_now() < path.refuses_since + self.patience.longest:
                look = min(look, path.refuses_since + self.patience.longest)
        return look

    cdef int attend(self, Channel channel, int64_t now) except -1:
        cdef Path path
        cdef int events = 0
        if channel.debt_due and now >= channel.debt_due:
            self.acknowledge(channel, now)
            events += 1
        for path in channel.paths:
            if (path.is_lost or path.owes_answer) and not channel.lost:
                events += self.advance_path(path, now)
        if channel.lost:
            return events
        if channel.stranded:
            return events + self.wait_for_path(channel, now)
        if channel.has_strays:
            self.send_strays(channel, now)
        if channel.deadline and now >= channel.deadline:
            events += self.time_out(channel, now)
        return events

    cdef int wait_for_path(self, Channel channel, int64_t now) except -1:
        """No path stands; the number of events."""
        cdef Proc proc = channel.proc
        cdef Path path
        if proc.failure is not None:
            self.give_up(channel, proc.failure)
            return 1
        if now - channel.stranded > self.patience.failover:
            names = ", ".join([path.btl.name for path in channel.paths])
            self.give_up(channel, MPIError(ERR_PROC_FAILED, (
                f"rank {proc.rank} of {proc.job} (host {proc.host}, pid {proc.pid}) was out of reach over btl {names} for "
                f"{self.patience.failover / 1e9:g} s (pml_dr_failover_timeout): {channel.error}")))
            return 1
        channel.deadline = 0
        return 0

    cdef int time_out(self, Channel channel, int64_t now) except -1:
        """The oldest packet was not acknowledged in time; the number of events."""
        cdef Packet *packet = &channel.packets[channel.oldest % WINDOW]
        cdef Proc proc = channel.proc
        cdef Path path = None
        cdef Path other
        cdef int events = 0
        if packet.path != NOWHERE:
            path = <Path> channel.paths[packet.path]
            path.misses += 1
            if path.misses == 1:
                path.missed_since = now
            if path.misses >= LATE and path.can_renew():
                self.stand_by(channel)
                for other in channel.paths:
                    if not other.is_lost and other.confirmed > path.missed_since and other is not path:
                        self.lose(path, MPIError(ERR_PROC_FAILED, f"btl {path.btl.name} is silent"))
                        return 1
        if packet.tries > self.patience.retry_limit:
            names = ", ".join([other.btl.name for other in channel.paths])
            self.give_up(channel, MPIError(ERR_PROC_FAILED, (
                f"rank {proc.rank} of {proc.job} (host {proc.host}, pid {proc.pid}) has not acknowledged a packet that was "
                f"sent {packet.tries} times over btl {names}; pml_dr_retry_limit {self.patience.retry_limit} allows "
                f"for more or less")))
            return 1
        if self.repeat(channel, packet, self.standing(channel, packet.path, packet.length), now) == OK:
            channel.timeout = min(2 * channel.timeout, self.patience.longest)
            events += 1
        if not channel.lost:
            channel.deadline = now + channel.timeout
        return events

    cpdef bint may_sleep(self) except -1:
        """About to sleep: what is owed is paid first, since nothing may come for it to ride on."""
        cdef Channel channel
        for channel in list(self.busy):
            if channel.debt_due and not channel.lost:
                self.acknowledge(channel, clock_now())
        return True

    # -- trouble and the end

    cdef int give_up(self, Channel channel, object error) except -1:
        if channel.lost:
            return 0                                 # the inner BTL has reported it before it refused
        channel.lost = True
        channel.error = error
        channel.clear()
        self.peers_lost += 1
        return (<FramedBtl> (<Path> channel.paths[0]).btl).report_error(channel.proc, error)

    def close(self):
        """Nothing is sent, or sent again, any more; again is harmless."""
        if self.helper is not None:
            self.helper.stop()
        unregister_source(self)
        exclude_watchers()
        self.busy.clear()
