# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""One connected socket, without Python; see `wire.pxd`."""

cdef extern from *:
    """
    #include <errno.h>
    #include <linux/sockios.h>
    #include <netinet/in.h>
    #include <netinet/tcp.h>
    #include <poll.h>
    #include <string.h>
    #include <sys/epoll.h>
    #include <sys/ioctl.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <unistd.h>

    /* Minus the error number where the call failed.  What one part holds goes by the calls that take no list of parts: of a
       short message the list takes the system longer than the bytes. */
    static ssize_t ompy_tcp_receive(int number, void *list, int count) {
        struct iovec *parts = list;
        ssize_t got;
        do {
            if (count == 1) {
                got = recv(number, parts->iov_base, parts->iov_len, MSG_DONTWAIT);
            } else {
                struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
                got = recvmsg(number, &message, MSG_DONTWAIT);
            }
        } while (got < 0 && errno == EINTR);
        return got < 0 ? -errno : got;
    }
    enum { OMPY_TCP_SHORT = 512 };
    static ssize_t ompy_tcp_send(int number, void *list, int count, int more) {
        struct iovec *parts = list;
        int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0);
        char joined[OMPY_TCP_SHORT];
        struct iovec one = {joined, 0};
        ssize_t sent;
        for (int index = 0; count > 1 && index < count; index++) {
            if (parts[index].iov_len > sizeof joined - one.iov_len) {
                one.iov_len = 0;
                break;
            }
            memcpy(joined + one.iov_len, parts[index].iov_base, parts[index].iov_len);
            one.iov_len += parts[index].iov_len;
        }
        if (one.iov_len || count == 1) {
            parts = count == 1 ? parts : &one;
            count = 1;
        }
        do {
            if (count == 1) {
                sent = send(number, parts->iov_base, parts->iov_len, flags);
            } else {
                struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
                sent = sendmsg(number, &message, flags);
            }
        } while (sent < 0 && errno == EINTR);
        return sent < 0 ? -errno : sent;
    }
    /* To be told again that nothing is to be delayed has Linux send what it has. */
    static void ompy_tcp_send_gathered(int number) {
        int on = 1;
        setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    static int ompy_tcp_unacknowledged(int number) {
        int left = 0;
        return ioctl(number, SIOCOUTQ, &left) ? 0 : left;
    }
    /* A peer that has no room for more answers each probe, however rarely one is sent; so does one that is kept alive.  What
       can't even leave, as when a device is down, is probed for too. */
    static unsigned int ompy_tcp_silence(int number) {
        struct tcp_info info;
        socklen_t size = sizeof info;
        memset(&info, 0, sizeof info);
        if (getsockopt(number, IPPROTO_TCP, TCP_INFO, &info, &size))
            return 0;
        if ((info.tcpi_unacked == 0 || info.tcpi_retransmits == 0) && info.tcpi_probes < 2)
            return 0;
        return info.tcpi_last_ack_recv;
    }
    static int ompy_tcp_watch(int epoll, int number, int writable, int anew) {
        struct epoll_event event = {.events = EPOLLIN | (writable ? EPOLLOUT : 0), .data.fd = number};
        return epoll_ctl(epoll, anew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, number, &event);
    }
    static int ompy_tcp_forget(int epoll, int number) {
        struct epoll_event event;
        memset(&event, 0, sizeof event);
        return epoll_ctl(epoll, EPOLL_CTL_DEL, number, &event);
    }
    enum { OMPY_TCP_ASKED = 32 };
    static unsigned int ompy_tcp_ask(const int *numbers, int count) {
        struct pollfd asked[OMPY_TCP_ASKED];
        unsigned int found = 0;
        count = count < OMPY_TCP_ASKED ? count : OMPY_TCP_ASKED;
        for (int index = 0; index < count; index++)
            asked[index] = (struct pollfd){numbers[index], POLLIN, 0};
        if (poll(asked, count, 0) > 0)
            for (int index = 0; index < count; index++)
                found |= (unsigned int)(asked[index].revents != 0) << index;
        return found;
    }
    struct ompy_tcp_ready { int number, readable, writable; };
    static int ompy_tcp_look(int epoll, void *ready, int most) {
        struct ompy_tcp_ready *found = ready;
        struct epoll_event events[64];
        int count = epoll_wait(epoll, events, most < 64 ? most : 64, 0);
        for (int index = 0; index < count; index++) {
            found[index].number = events[index].data.fd;
            found[index].readable = (events[index].events & ~EPOLLOUT) != 0;
            found[index].writable = (events[index].events & EPOLLOUT) != 0;
        }
        return count < 0 ? 0 : count;
    }
    """
    ssize_t receive_now "ompy_tcp_receive"(int number, void *parts, int count) noexcept nogil
    ssize_t send_now "ompy_tcp_send"(int number, void *parts, int count, bint more) noexcept nogil
    void send_what_was_gathered "ompy_tcp_send_gathered"(int number) noexcept nogil
    int count_unacknowledged "ompy_tcp_unacknowledged"(int number) noexcept nogil
    unsigned int read_silence "ompy_tcp_silence"(int number) noexcept nogil
    int shutdown(int number, int how) nogil
    int SHUT_WR
    int change_watch "ompy_tcp_watch"(int epoll, int number, bint writable, bint anew) noexcept nogil
    int end_watch "ompy_tcp_forget"(int epoll, int number) noexcept nogil
    unsigned int ask_now "ompy_tcp_ask"(const int *numbers, int count) noexcept nogil
    int look_now "ompy_tcp_look"(int epoll, void *found, int most) noexcept nogil
    enum: EAGAIN, ENOBUFS, ENOMEM


cdef bint pull(Wire *wire) noexcept nogil:
    cdef Part parts[2]
    cdef size_t first = 0, room
    cdef ssize_t got
    cdef int count = 0
    if wire.over:
        return False
    if wire.sealed != NULL:
        return pull_sealed(wire)
    if wire.left:
        # The buffer is empty: whoever begins a put has moved what was in it.
        first = min(wire.left, <size_t> SLICE)
        if wire.target == NULL:
            first = min(first, wire.room)
            parts[0] = Part(wire.buffer, first)
        else:
            parts[0] = Part(wire.target, first)
        count = 1
    if first == wire.left and wire.target == NULL and first:
        pass                                     # what is dropped lies where the next frame would
    elif first == wire.left:
        if wire.end == wire.room:
            return False
        room = wire.room - wire.end
        parts[count] = Part(wire.buffer + wire.end, min(room, <size_t> BEHIND) if count else room)
        count += 1
    got = receive_now(wire.number, parts, count)
    if got <= 0:
        return end(wire, got)
    first = min(first, <size_t> got)
    if wire.target != NULL:
        wire.target += first
    wire.left -= first
    wire.end += got - first
    if wire.left == 0:
        wire.fresh = True
    return True


cdef bint pull_sealed(Wire *wire) noexcept nogil:
    cdef Part part = Part(wire.sealed + wire.sealed_size, SEALED_ROOM - wire.sealed_size)
    cdef ssize_t got
    if part.iov_len == 0:
        return False
    got = receive_now(wire.number, &part, 1)
    if got <= 0:
        return end(wire, got)
    wire.sealed_size += got
    wire.fresh = True
    return True


cdef bint end(Wire *wire, ssize_t got) noexcept nogil:
    if got == -EAGAIN:
        return False
    wire.over = ENDED if got == 0 else <int> -got
    wire.fresh = True
    return True


cdef void drop(Wire *wire) noexcept nogil:
    wire.begin = wire.end = wire.left = wire.sealed_begin = wire.sealed_size = 0


cdef ssize_t push(int number, Part *parts, int count) noexcept nogil:
    return taken(send_now(number, parts, count, False))


cdef ssize_t gather(int number, Part *parts, int count) noexcept nogil:
    return taken(send_now(number, parts, count, True))


cdef inline ssize_t taken(ssize_t sent) noexcept nogil:
    """What the system has no memory for at the moment waits as what it has no room for."""
    return 0 if sent == -EAGAIN or sent == -ENOBUFS or sent == -ENOMEM else sent


cdef void send_gathered(int number) noexcept nogil:
    send_what_was_gathered(number)


cdef int unacknowledged(int number) noexcept nogil:
    return count_unacknowledged(number)


cdef unsigned int silence(int number) noexcept nogil:
    return read_silence(number)


cdef void end_of_sending(int number) noexcept nogil:
    shutdown(number, SHUT_WR)


cdef int watch(int epoll, int number, bint writable, bint anew) noexcept nogil:
    return change_watch(epoll, number, writable, anew)


cdef int forget(int epoll, int number) noexcept nogil:
    return end_watch(epoll, number)


cdef unsigned int arrived(const int *numbers, int count) noexcept nogil:
    return ask_now(numbers, count)


cdef int look_around(int epoll, Ready *found, int most) noexcept nogil:
    return look_now(epoll, found, most)
