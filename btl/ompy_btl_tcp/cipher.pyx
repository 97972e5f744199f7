# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""One direction of a TLS 1.3 connection; see `cipher.pxd`."""
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from ompy_btl_tcp.wire cimport Part


cdef class Cipher:
    """Of one direction.

    Parameters:
        secret: from which the keys are made.
        seals: this end sends in that direction; else it receives.
        number: of records that there were before.

    Errors: OSError when the library fails.
    """

    def __init__(self, secret not None, bint seals, uint64_t number):
        self.secret = secret
        self.seals = seals
        self.extra = secret.tag_size + 1
        self.take_keys()
        self.number = number

    cdef int take_keys(self) except -1:
        cdef bytes key = self.secret.key, iv = self.secret.iv
        self.take_key(<const unsigned char *> PyBytes_AS_STRING(key))
        self.iv_size = len(iv)
        memcpy(self.iv, PyBytes_AS_STRING(iv), self.iv_size)
        self.number, self.most = 0, self.secret.most_records
        return 0

    cdef int renew(self) except -1:
        self.secret = self.secret.next()
        return self.take_keys()

    cdef void make_nonce(self, unsigned char *nonce) noexcept nogil:
        cdef uint64_t number = self.number
        cdef size_t index
        self.number += 1
        memcpy(nonce, self.iv, self.iv_size)
        for index in range(1, 9):
            nonce[self.iv_size - index] ^= <unsigned char> number
            number >>= 8

    cdef int take_key(self, const unsigned char *key) except -1:
        raise NotImplementedError

    cdef size_t seal(self, Part *parts, size_t offset, size_t size, unsigned char kind, char *record) noexcept nogil:
        return 0

    cdef unsigned char open(self, char *record, size_t body, char *first, size_t first_size, char *second) noexcept nogil:
        return 0


cdef void make_header(char *record, unsigned char kind, size_t body) noexcept nogil:
    record[0] = <char> kind
    record[1] = record[2] = 3
    record[3] = <char> (body >> 8)
    record[4] = <char> body
