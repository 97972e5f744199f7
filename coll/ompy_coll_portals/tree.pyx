# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Minimum spanning trees; see `tree.pxd`."""


cdef int steps_of(int rank, int size, int root, Step *steps) noexcept nogil:
    cdef int low = 0, high = size - 1
    cdef int count = 0
    cdef int middle, partner
    while low < high:
        middle = (low + high) // 2
        partner = middle + 1 if root <= middle else low
        if rank == root or rank == partner:
            steps[count].peer = partner if rank == root else root
            steps[count].above = rank == root
            steps[count].low = middle + 1 if root <= middle else low
            steps[count].high = high if root <= middle else middle
            count += 1
        if rank <= middle:
            root = root if root <= middle else partner
            high = middle
        else:
            root = root if root > middle else partner
            low = middle + 1
    return count


cdef inline int put(Exchange exchange, int rank, int phase, const char *data, uint64_t length, bint is_long) except -1:
    return exchange.send_long(rank, phase, data, length) if is_long else exchange.send(rank, phase, data, length)


cdef inline int take(Exchange exchange, int rank, int phase, char *data, uint64_t length, bint is_long) except -1:
    return exchange.recv_long(rank, phase, data, length) if is_long else exchange.recv(rank, phase, data, length)


cdef int bcast(Exchange exchange, int root, int phase, char *data, uint64_t length, bint is_long) except -1:
    cdef Step steps[MOST_STEPS]
    cdef int index
    for index in range(steps_of(exchange.comm.rank, exchange.comm.size, root, steps)):
        if steps[index].above:
            put(exchange, steps[index].peer, phase, data, length, is_long)
        else:
            take(exchange, steps[index].peer, phase, data, length, is_long)
    return 0


cdef int scatter(Exchange exchange, int root, int phase, char *data, uint64_t *offsets, bint is_long) except -1:
    cdef Step steps[MOST_STEPS]
    cdef uint64_t begin, length
    cdef int index
    for index in range(steps_of(exchange.comm.rank, exchange.comm.size, root, steps)):
        begin = offsets[steps[index].low]
        length = offsets[steps[index].high + 1] - begin
        if steps[index].above:
            put(exchange, steps[index].peer, phase, data + begin, length, is_long)
        else:
            take(exchange, steps[index].peer, phase, data + begin, length, is_long)
    return 0


cdef int gather(Exchange exchange, int root, int phase, char *data, uint64_t *offsets, bint is_long) except -1:
    cdef Step steps[MOST_STEPS]
    cdef uint64_t begin, length
    cdef int index = steps_of(exchange.comm.rank, exchange.comm.size, root, steps)
    while index > 0:
        index -= 1
        begin = offsets[steps[index].low]
        length = offsets[steps[index].high + 1] - begin
        if steps[index].above:
            take(exchange, steps[index].peer, phase, data + begin, length, is_long)
        else:
            put(exchange, steps[index].peer, phase, data + begin, length, is_long)
    return 0


cdef char *reduce(Exchange exchange, int root, int phase, char *data, char *spare, Py_ssize_t count, Typemap typemap,
                  Operation operation, bint is_long) except NULL:
    cdef Step steps[MOST_STEPS]
    cdef uint64_t length = count * typemap.size
    cdef int index = steps_of(exchange.comm.rank, exchange.comm.size, root, steps)
    while index > 0:
        index -= 1
        if not steps[index].above:
            put(exchange, steps[index].peer, phase, data, length, is_long)
            continue
        take(exchange, steps[index].peer, phase, spare, length, is_long)
        if steps[index].low > exchange.comm.rank:
            # Ours are the left operands: the result is in what has come.
            operation.reduce(data, spare, count, typemap)
            data, spare = spare, data
        else:
            operation.reduce(spare, data, count, typemap)
    return data


cdef int barrier(Exchange exchange, int phase) except -1:
    cdef Step steps[MOST_STEPS]
    cdef char nothing
    cdef int count = steps_of(exchange.comm.rank, exchange.comm.size, 0, steps)
    cdef int index = count
    while index > 0:
        index -= 1
        if steps[index].above:
            exchange.recv(steps[index].peer, phase, &nothing, 0)
        else:
            exchange.send(steps[index].peer, phase, &nothing, 0)
    for index in range(count):
        if steps[index].above:
            exchange.send(steps[index].peer, phase + 1, &nothing, 0)
        else:
            exchange.recv(steps[index].peer, phase + 1, &nothing, 0)
    return 0
