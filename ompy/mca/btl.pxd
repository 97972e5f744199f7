# The contract of byte transfer layers (Open MPI slides, "BTL: Interfaces").
#
# A BTL moves runs of bytes to a peer and hands them to whoever registered for their tag.  It knows no communicator, no
# MPI rank and no matching; a PML stands above it, chooses protocols and cuts messages.
#
# Clauses are numbered and named: the conformance kit (`ompy conformance`, ompy/testing) says which one was broken.
#
# LIFE CYCLE
#    1 open          The component's `query` makes a `Btl` and fills in its limits.  It opens what needs no peer (a listening
#                    socket, a segment).  Limits are positive, and no eager limit is above `max_send_size`.
#    2 publish       `address()` returns the bytes that peers need, the same at each call; the runtime puts them on this
#                    process's card in the modex.
#    3 reach         At first contact with a peer, `add_procs` is given its Proc and returns an Endpoint, or the reason
#                    (a string) why this BTL can't reach it: one answer for each Proc, in their order, and the same
#                    Endpoint when asked again, until `del_procs` was given it: then another.  No connection is made yet.
#    4 connect       At the first message.  A peer may send to us before we have an endpoint for it.
#    5 progress      The engine calls `progress` often.  It receives, calls receivers, finishes descriptors, and returns the
#                    number of events: 0 when there were none.  It never waits.
#    6 sleep         When nothing goes on a rank sleeps: `may_sleep` is true unless there is work at hand.  What arrives
#                    then is seen by `ready`, or makes `descriptor` readable.
#    7 close         When all ranks have met, `del_procs` gives back what a peer held, and `finalize` the rest: no file,
#                    segment, thread, process or descriptor is left.  What was taken before arrives, with no other call.
#    8 reopen        After `finalize` the component can be opened again in the same process.
#    9 fork          A child that a rank forks, and that makes no call, disturbs nothing, however it ends and however long it
#                    lives: peers see the end of its rank as soon as without it.
#
# RULES
#   10 declaration   The component's `capabilities`, its `flags` and the methods that it overrides say the same.
#   11 delivery      What is sent arrives: whole, unchanged, once, at the peer that it was sent to.
#   12 tag           It is handed to the receiver of its tag.
#   13 sender        The receiver is given the sender's endpoint; None only while there is none.
#   14 size          A message has 0 to `max_send_size` bytes, header and payload together; `alloc` and `prepare_src` give
#                    room for each of these sizes.
#   15 completion    A descriptor's callback runs exactly once: perhaps inside `send`, `put` or `get`, perhaps from a later
#                    `progress`.  Its status is 0, or an error class when the transfer has failed.
#   16 ownership     A descriptor, with the memory that it names, belongs to the BTL from `send`, `put` or `get` until its
#                    callback, and to the caller from then on.
#   17 receipt       What a receiver is handed is valid, and stays as it is, during the call only.  A receiver that raises has
#                    received: what it raises comes out of `progress`, and all other messages arrive as they would have.
#   18 back-pressure  OUT_OF_RESOURCE, or None instead of a descriptor, says: nothing was taken, no callback will run, the
#                    caller tries again from progress.  It is never an exception, no call waits instead, and it ends when
#                    the peer makes progress, however many ranks push at once and whether or not the peer sends.
#   19 order         Bytes to one peer may arrive in any order unless FLAG_IN_ORDER is declared.
#   20 broken peer   It is reported through the function given to `register_error`, once and in bounded time, by a BTL that
#                    had exchanged messages with it.  What is on its way to it completes with an error, what is sent later
#                    does so or raises MPIError, and no other exception.  Other peers are not disturbed.
#   21 quiet         A BTL never prints, aborts or exits, nor writes beside memory that is its own or was given to it.
#   22 nesting       Receivers are called in `progress` alone, callbacks there and in `send`, `put` or `get`.  Both may call
#                    `send`, `sendi`, `put`, `get` on any BTL, but nobody calls `progress` from one.
#   23 thrift        What a message held is given back with it: nothing grows with the number of messages, or of refusals.
#   24 put           Writes exactly `size` bytes, up to `put_limit`, from and to addresses that are multiples of
#                    `put_alignment`; they are there when `flush` says so, or a message sent after the callback arrives.
#   25 get           Reads exactly `size` bytes, up to `get_limit`, aligned to `get_alignment`; they are here at the callback.
#   26 atomics       On a word of 4 or 8 bytes, signed, at a multiple of its size: one operation at a time on each word, whoever
#                    asks, also the processor of its owner.  The old value is at `local_address` at the callback.  A BTL may
#                    want the word in the shared heap, where there is one (`ompy.core.heap`).
#   27 asynchrony    With FLAG_ASYNCHRONOUS all that was taken completes while the peer makes no call.
#   28 withdrawal    After `withdraw` has returned True, no `get` of the peer's from that memory that may have read anything
#                    later completes without an error (ERR_RMA_RANGE), and no `put` of the peer's changes it, until `restore`.
#   29 fairness      A peer's message does not wait for ever behind another's: so many calls of `progress` at most, however much
#                    comes from others meanwhile.
#   30 statistics    `statistics` gives numbers by name whenever it is asked, from any thread, also amid another call; asking
#                    changes nothing.
#   31 renewal       With FLAG_RENEWAL a broken peer (20), or one that is silent, can be met again: after `renew` a message to
#                    its endpoint makes contact anew.  The peer takes it as it took the first, renewed or not.  What was on its
#                    way may be lost or come late, but comes once.  A peer that breaks again is reported again.
#
# WHAT IT MAY RELY ON
#   Every method but `statistics` is called by the engine's owner (`ompy/core/owner.pxd`), or at the start and the end, when
#   there is one thread.  Whoever else wants to call waits, though a method lets the GIL go, so a BTL's state needs no lock; and
#   no signal handler runs, so that what a method has begun it ends.  A BTL with threads of its own guards what it shares with
#   those.
#
# A BTL in plain Python subclasses `Btl` and overrides `add_procs`, `send` and `progress`; it sees memoryviews and no
# pointer.  A compiled one also overrides `sendi`, which takes pointers and makes no descriptor.
from libc.stdint cimport int64_t, uint64_t

from ompy.core.proc cimport Proc
from ompy.core.progress_source cimport ProgressSource
from ompy.core.registration cimport RegistrationCache
from ompy.core.request cimport Request

cdef enum:
    INTERFACE = 1               # baked into each compiled component; the loader refuses another

# Btl.flags
cdef enum:
    FLAG_SEND = 0x01            # can carry active messages
    FLAG_PUT = 0x02             # can write peer memory
    FLAG_GET = 0x04             # can read peer memory
    FLAG_ATOMICS = 0x08         # can change words of the peer's; and put and get serve all memory that the peer exposes
    FLAG_IN_ORDER = 0x10        # messages to one peer arrive in the order of the calls
    FLAG_SENDI = 0x20           # `sendi` is worth calling
    FLAG_NEEDS_REGISTRATION = 0x40  # put and get want registered memory at both sides
    FLAG_ASYNCHRONOUS = 0x80    # what was taken completes while the peer makes no call
    FLAG_RENEWAL = 0x100        # contact with a peer that was reported broken, or is silent, can be made anew

# Who an active message is for.  TAG_OSC is `ompy.mca.active_rdma`.  0 to 15 are the core's, 16 to 255 free.
cdef enum:
    TAG_PML = 1
    TAG_OSC = 2
    TAG_COUNT = 256


cdef class Endpoint:
    """One peer as one BTL sees it.  BTLs subclass it."""
    cdef readonly Btl btl
    cdef readonly Proc proc


cdef class Receiver:
    """Takes the active messages of one tag."""
    # `data` is valid during the call.  `endpoint` is None when the BTL does not know (or does not yet know) the sender.
    cdef int arrive(self, Btl btl, Endpoint endpoint, const char *data, size_t length) except -1
    # What `arrive` calls in a receiver written in Python.
    cpdef int receive(self, Btl btl, Endpoint endpoint, object data) except -1


ctypedef int (*CompletionFunction)(object context, Descriptor descriptor, int status) except -1

cdef class Descriptor:
    """A run of bytes on its way.

    `data` is memory of the BTL's: header first, then payload.  With `prepare_src` the payload may stay where the program
    has it (`payload`), for BTLs that send from there.  For put and get, `local_address` and `remote_address` name the
    memory.
    """
    cdef readonly Btl btl
    cdef char *data
    cdef readonly size_t capacity
    cdef public size_t length                    # bytes of `data` to send
    cdef char *payload                           # bytes sent after `data`, or NULL
    cdef public size_t payload_length
    cdef public size_t local_address
    cdef public uint64_t remote_address
    cdef public size_t size                      # of a put or get
    cdef public bytes local_handle, remote_handle
    cdef CompletionFunction callback
    cdef public object context
    cdef public bint in_flight                   # set by the sender before the call, cleared by `complete`

    # For BTLs: the transfer is over (status 0) or has failed (an error class).  Gives the descriptor back to its owner.
    cpdef int complete(self, int status=*) except -1


# Those of `Btl.atomic`, each at its number (`ompy.core.atomic`).
cdef tuple atomic_names
# Carry an operation of `Btl.atomic` out on a word of this process, or one that it sees; ERR_ARG for what is none.
cdef int carry_out_atomic(void *word, size_t size, str operation, int64_t operand, int64_t compare, void *old) except -1


cdef class Btl(ProgressSource):
    # -- data, filled in by the component before it returns the module
    cdef public str name
    cdef public int flags
    cdef public size_t eager_limit               # header and payload that may be sent before a match
    cdef public size_t rndv_eager_limit          # payload that travels with a rendezvous
    cdef public size_t max_send_size             # header and payload of any one send
    cdef public size_t rdma_pipeline_send_length  # bytes sent by copy while registrations are made
    cdef public size_t rdma_pipeline_frag_size
    cdef public size_t min_rdma_pipeline_size
    cdef public size_t put_limit, get_limit      # bytes of one put, one get; 0 for no limit
    cdef public size_t put_alignment, get_alignment
    cdef public int latency                      # nanoseconds, rough; the lower is asked first for eager messages
    cdef public int bandwidth                    # megabytes a second, rough; shares are given by it
    cdef public int exclusivity                  # only the highest among those that reach a peer are used
    # Bytes of registrations that nobody uses to keep for the next transfer; only for a BTL whose registrations stay right
    # when memory at their address is unmapped and mapped anew.  See `ompy/core/registration.pxd`.
    cdef public size_t registration_budget
    # -- sends that may leave together
    # Set before a `sendi` that its sender has still to wait for, cleared by a BTL that looks at it: the message may leave with
    # others, when `progress` is called next.
    cdef bint deferrable
    # Complete once those have left that were deferred; None: there are none.
    cdef Request departure
    # -- the engine's
    cdef list receivers                          # tag -> Receiver
    cdef list spare_descriptors
    cdef object error_handler
    cdef RegistrationCache registrations         # made at the first `hold_mem`
    cdef public dict counters                    # name -> number, shown by `ompy_info` and the performance variables

    # -- set up, once per process or peer: plain Python will do
    cpdef bytes address(self)
    cpdef dict cards(self)                       # the addresses on this process's card, each by the name that peers look for
    cpdef list add_procs(self, list procs)       # a list of Endpoint or str (the reason), one for each Proc
    cpdef int del_procs(self, list endpoints) except -1
    cpdef int renew(self, Endpoint endpoint) except -1           # clause 31; not from within a receiver or a callback
    cpdef int register(self, int tag, Receiver receiver) except -1
    cpdef int register_error(self, object handler) except -1      # handler(btl, proc, exception)
    cpdef int report_error(self, Proc proc, object error) except -1
    cpdef int release_registrations(self) except -1      # what is kept unused; called before `finalize`
    cpdef int finalize(self) except -1
    cpdef dict statistics(self)

    # -- descriptors
    cpdef Descriptor alloc(self, Endpoint endpoint, size_t size)                 # None when out of resources
    cpdef int free(self, Descriptor descriptor) except -1
    # A descriptor whose first `header_size` bytes are for the caller to fill and whose payload is user memory, by
    # reference or copied, as the BTL likes: the memory must stay as it is until the callback.  None: out of resources.
    cpdef Descriptor prepare_src(self, Endpoint endpoint, size_t address, size_t header_size, size_t size)
    # The receiving side's counterpart for put: registers if need be; remote peers use the descriptor's address and handle.
    cpdef Descriptor prepare_dst(self, Endpoint endpoint, size_t address, size_t size)

    # -- per message
    cpdef int send(self, Endpoint endpoint, Descriptor descriptor, int tag) except -1
    # Header and payload out at once, no descriptor, no callback: both may be reused when it returns OK.
    cdef int sendi(self, Endpoint endpoint, const char *header, size_t header_size,
                   const char *payload, size_t payload_size, int tag) except -1
    # Whether the peer's `get` may read this memory of this process's, for a BTL whose reach depends on where memory lies.
    cpdef bint exposes(self, Endpoint endpoint, size_t address, size_t size) except -1
    # The program takes back memory that the peer may be reading or writing (clause 28); False: the BTL can't call it back.
    cpdef bint withdraw(self, Endpoint endpoint, size_t address, size_t size) except -1
    cpdef int restore(self, Endpoint endpoint, size_t address, size_t size) except -1
    cpdef int put(self, Endpoint endpoint, Descriptor descriptor) except -1
    cpdef int get(self, Endpoint endpoint, Descriptor descriptor) except -1
    # operation: "add", "and", "or", "xor", "swap", "min", "max", "cswap" on `size` bytes; the old value lands at local_address
    cpdef int atomic(self, Endpoint endpoint, Descriptor descriptor, str operation, object operand, object compare) except -1
    # What a BTL with FLAG_NEEDS_REGISTRATION overrides: one registration, good for every endpoint (the first one is given),
    # and for any stretch within it.
    cpdef bytes register_mem(self, Endpoint endpoint, size_t address, size_t size)
    cpdef int deregister_mem(self, bytes handle) except -1
    # What its users call: the same through the cache.
    cpdef bytes hold_mem(self, Endpoint endpoint, size_t address, size_t size)
    cpdef int release_mem(self, bytes handle) except -1
    # Until every put and atomic to the endpoint (all of them when None) is visible there; OUT_OF_RESOURCE: ask again.
    cpdef int flush(self, Endpoint endpoint) except -1

    # For BTLs: hand an arrived message to the receiver of its tag.
    cdef inline int deliver(self, int tag, Endpoint endpoint, const char *data, size_t length) except -1:
        return (<Receiver> self.receivers[tag]).arrive(self, endpoint, data, length)
    cpdef int deliver_view(self, int tag, Endpoint endpoint, const unsigned char[::1] data) except -1
