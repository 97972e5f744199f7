# One direction of a TLS 1.3 connection: records are made, or opened, under the keys of a traffic secret (RFC 8446, 5.2, 5.3).
#
#     header             content      kind    tag
#     | 23, 0x0303, n |  ........  |  23   |  16 bytes  |       the header is authenticated, content and kind are encrypted;
#       5 bytes          '------- n bytes ------------'         the nonce is `iv` with the record's number in its last bytes
#
# Ciphers are those of libraries that are looked up at run time, `libcrypto.pxd` and `libsodium.pxd`; the secret's suite says
# which.  Where a record's kind stands is theirs: a library that takes a record in one call has it in the header, so that what
# it is to encrypt lies in one piece where the program has it.
from libc.stdint cimport uint64_t

from ompy_btl_tcp.wire cimport Part

cdef enum:
    MOST_CONTENT = 16 << 10                      # bytes of one record
    MOST_BODY = (16 << 10) + 256                 # bytes behind the header of one that somebody else made
    HEADER = 5
    MOST_TAG = 32
    AROUND = HEADER + 1 + MOST_TAG               # bytes of a record that are not content, at most
    MOST_IV = 16

cdef enum:                                       # of a record
    ALERT = 21
    HANDSHAKE = 22
    APPLICATION = 23

cdef class Cipher:
    cdef bint seals                              # or opens
    cdef size_t extra                            # bytes of a record, behind its header, that are not content
    cdef unsigned char[MOST_IV] iv
    cdef size_t iv_size
    cdef uint64_t number                         # of the next record
    cdef uint64_t most                           # records, after which new keys are due
    cdef object secret                           # TrafficSecret

    # Make a record of `size` bytes of content, which lie in `parts` from `offset` in the first of them on; there is room for
    # AROUND more.  The bytes of it; 0: the library failed.
    cdef size_t seal(self, Part *parts, size_t offset, size_t size, unsigned char kind, char *record) noexcept nogil
    # Open the record behind a header that says `body` bytes: so many of its content to `first`, and what is left to `second`.
    # The kind; 0: it was forged or damaged, and what lies there, and in the record, is nothing.
    cdef unsigned char open(self, char *record, size_t body, char *first, size_t first_size, char *second) noexcept nogil
    # Begin to use a key.
    cdef int take_key(self, const unsigned char *key) except -1
    # Go on with the next keys (RFC 8446, 7.2).
    cdef int renew(self) except -1
    cdef int take_keys(self) except -1
    # Of the next record.
    cdef void make_nonce(self, unsigned char *nonce) noexcept nogil

# The header of a record that is `body` bytes behind it.
cdef void make_header(char *record, unsigned char kind, size_t body) noexcept nogil
