# The ciphers of OpenSSL's libcrypto: the one that `btl_tcp_libcrypto` names, else that of Python's `ssl`, where that is a
# library of its own.
from ompy_btl_tcp.cipher cimport Cipher


cdef class Libcrypto(Cipher):
    cdef void *context                           # EVP_CIPHER_CTX

    cdef bint begin(self, const char *header) noexcept nogil
