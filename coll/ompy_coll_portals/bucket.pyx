# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Bucket algorithms; see `bucket.pxd`."""
from ompy_coll_portals.exchange cimport PORTAL_LONG, PORTAL_READY


cdef struct Ring:
    int left, right
    int entry                                    # the block that the left neighbour writes
    uint64_t before                              # its counter at the start


cdef int open_ring(Exchange exchange, int phase, char *data, uint64_t length, Ring *ring) except -1:
    cdef int rank = exchange.comm.rank, size = exchange.comm.size
    ring.left = (rank + size - 1) % size
    ring.right = (rank + 1) % size
    ring.entry = exchange.open_block(ring.left, phase, data, length)
    ring.before = exchange.pieces(ring.entry)
    return 0


cdef int allgather(Exchange exchange, int phase, char *data, uint64_t *offsets) except -1:
    cdef int rank = exchange.comm.rank, size = exchange.comm.size
    cdef int step, block
    cdef Ring ring
    open_ring(exchange, phase, data, offsets[size], &ring)
    try:
        exchange.transmit(PORTAL_READY, ring.left, phase, NULL, 0, 0)
        exchange.await_ready(ring.right, phase)
        for step in range(size - 1):
            block = (rank + size - step) % size
            exchange.await_pieces(ring.entry, ring.left, ring.before + step)
            exchange.transmit(PORTAL_LONG, ring.right, phase, data + offsets[block], offsets[block + 1] - offsets[block],
                              offsets[block])
        exchange.await_pieces(ring.entry, ring.left, ring.before + size - 1)
    finally:
        exchange.close_block(ring.entry)
    return 0


cdef int reduce_scatter(Exchange exchange, int phase, char *data, char *spare, uint64_t *offsets, Typemap typemap,
                        Operation operation) except -1:
    cdef int rank = exchange.comm.rank, size = exchange.comm.size
    cdef int step, block
    cdef Ring ring
    open_ring(exchange, phase, spare, offsets[size], &ring)
    try:
        exchange.transmit(PORTAL_READY, ring.left, phase, NULL, 0, 0)
        exchange.await_ready(ring.right, phase)
        for step in range(size - 1):
            block = (rank + size - 1 - step) % size
            exchange.transmit(PORTAL_LONG, ring.right, phase, data + offsets[block], offsets[block + 1] - offsets[block],
                              offsets[block])
            exchange.await_pieces(ring.entry, ring.left, ring.before + step + 1)
            block = (block + size - 1) % size
            operation.reduce(spare + offsets[block], data + offsets[block],
                             (offsets[block + 1] - offsets[block]) // typemap.size, typemap)
    finally:
        exchange.close_block(ring.entry)
    return 0
