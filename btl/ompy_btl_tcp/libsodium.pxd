# AEGIS-128L by libsodium, 1.0.19 or later: the one that `btl_tcp_libsodium` names, else that of pyzmq's wheel, else the
# system's.
#
# AEGIS (draft-irtf-cfrg-aegis-aead) makes its key stream and its tag by rounds of AES alone, side by side, so that it takes
# less than half the time of AES in GCM with the same instructions.  Records are those of TLS_AEGIS_128L with tags of 32 bytes,
# but that their kind stands in the header, which is authenticated and not encrypted:
#
#     | 23, 0x0303, n |  ........  |  32 bytes  |        content goes from the program's memory into the record, and from there
#                                                        into the program's memory, by the cipher itself
from ompy_btl_tcp.cipher cimport Cipher


cdef class Libsodium(Cipher):
    cdef unsigned char[16] key
