# One direction of a TLS 1.3 connection: records are made, or opened, under the keys of a traffic secret (RFC 8446, 5.2, 5.3).
#
#     header             content      kind    tag
#     | 23, 0x0303, n |  ........  |  23   |  16 bytes  |       the header is authenticated, content and kind are encrypted;
#       5 bytes          '------- n bytes ------------'         the nonce is `iv` with the record's number in its last bytes
#
# The ciphers are those of OpenSSL's libcrypto, which is looked up at run time: the one that `btl_tcp_libcrypto` names, else
# that of Python's `ssl`, where that is a library of its own.
from libc.stdint cimport uint64_t

from ompy_btl_tcp.wire cimport Part

cdef enum:
    MOST_CONTENT = 16 << 10                      # bytes of one record
    MOST_BODY = (16 << 10) + 256                 # bytes behind the header of one that somebody else made
    HEADER = 5
    TAG = 16
    AROUND = HEADER + 1 + TAG                    # bytes of a record that are not content

cdef enum:                                       # of a record
    ALERT = 21
    HANDSHAKE = 22
    APPLICATION = 23

cdef class Cipher:
    cdef void *context                           # EVP_CIPHER_CTX
    cdef bint seals                              # or opens
    cdef unsigned char[12] iv
    cdef uint64_t number                         # of the next record
    cdef uint64_t most                           # records, after which new keys are due
    cdef object secret                           # TrafficSecret

    # Make a record of `size` bytes of content, which lie in `parts` from `offset` in the first of them on; there is room for
    # AROUND more.  The bytes of it; 0: the library failed.
    cdef size_t seal(self, Part *parts, size_t offset, size_t size, unsigned char kind, char *record) noexcept nogil
    # Open the record behind a header that says `body` bytes: so many of its content to `first`, and what is left to `second`.
    # The kind; 0: it was forged or damaged, and what lies there is nothing.
    cdef unsigned char open(self, const char *record, size_t body, char *first, size_t first_size,
                            char *second) noexcept nogil
    cdef bint begin(self, const char *header) noexcept nogil
    # Go on with the next keys (RFC 8446, 7.2).
    cdef int renew(self) except -1
    cdef int take_keys(self) except -1
