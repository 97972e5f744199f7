# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""AEGIS-128L by libsodium; see `libsodium.pxd`."""
import os
from importlib.util import find_spec
from pathlib import Path

from libc.string cimport memcpy
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym

from ompy_btl_tcp.cipher cimport HEADER, Cipher, make_header
from ompy_btl_tcp.wire cimport Part

# As its documentation declares them; lengths are of `unsigned long long`.
ctypedef int (*Encrypt)(unsigned char *, unsigned char *, unsigned long long *, const unsigned char *, unsigned long long,
                        const unsigned char *, unsigned long long, const unsigned char *, const unsigned char *,
                        const unsigned char *) noexcept nogil
ctypedef int (*Decrypt)(unsigned char *, unsigned char *, const unsigned char *, unsigned long long, const unsigned char *,
                        const unsigned char *, unsigned long long, const unsigned char *, const unsigned char *) noexcept nogil
ctypedef int (*Ask)() noexcept nogil

cdef Encrypt encrypt = NULL
cdef Decrypt decrypt = NULL
cdef str loaded = None                           # by the name that was asked for
cdef str refusal = None


def load(str name not None):
    """Find the library of that name; "": whichever there is.  OSError, in words for people, where none will do."""
    global loaded, refusal
    if loaded is None:
        loaded, refusal = name, look_up(name)
    elif name != loaded:
        raise OSError(f"btl_tcp_libsodium: this process has {loaded or 'one'} already, and can't have another")
    if refusal is not None:
        raise OSError(f"btl_tcp_libsodium: {refusal}" if name else refusal)


cdef str look_up(str name):
    """Why there is none, or None."""
    global encrypt, decrypt
    cdef void *library = NULL
    cdef Ask ask
    cdef void *sealing
    cdef void *opening
    if "/" in name and os.path.exists(name) and not os.path.isfile(name):
        return f"{name} is no regular file"      # to open a pipe would wait
    for path in (name,) if name else (*bundled(), "libsodium.so.26", "libsodium.so.23"):
        library = dlopen(os.fsencode(path), RTLD_NOW | RTLD_LOCAL)
        if library != NULL:
            break
    else:
        return dlerror().decode() if name else "libsodium is not installed"
    sealing = dlsym(library, "crypto_aead_aegis128l_encrypt_detached")
    opening = dlsym(library, "crypto_aead_aegis128l_decrypt_detached")
    ask = <Ask> dlsym(library, "sodium_init")
    if sealing == NULL or opening == NULL or ask == NULL:
        return f"{path} has no AEGIS-128L: libsodium has it from 1.0.19 on"
    if ask() < 0:
        return f"{path} can't be initialised"
    for question in (b"sodium_runtime_has_aesni", b"sodium_runtime_has_armcrypto"):
        ask = <Ask> dlsym(library, question)
        if ask != NULL and ask():
            encrypt, decrypt = <Encrypt> sealing, <Decrypt> opening
            return None
    return "this processor has no instructions for AES"


def bundled():
    """What pyzmq's wheel has brought with it."""
    spec = find_spec("zmq")
    if spec is None or spec.origin is None:
        return []
    return [str(path) for path in (Path(spec.origin).parent.parent / "pyzmq.libs").glob("libsodium*.so*")]


cdef class Libsodium(Cipher):
    """See `Cipher`."""

    cdef int take_key(self, const unsigned char *key) except -1:
        if encrypt == NULL:
            raise OSError("there is no libsodium with AEGIS-128L")
        memcpy(self.key, key, sizeof(self.key))
        self.extra = self.secret.tag_size        # the kind stands in the header
        return 0

    cdef size_t seal(self, Part *parts, size_t offset, size_t size, unsigned char kind, char *record) noexcept nogil:
        cdef unsigned char *sealed = <unsigned char *> record + HEADER
        cdef const unsigned char *content = <const unsigned char *> parts.iov_base + offset
        cdef unsigned char[16] nonce
        make_header(record, kind, size + self.extra)
        self.make_nonce(nonce)
        if parts.iov_len - offset < size:
            join(parts, offset, size, sealed)
            content = sealed
        if encrypt(sealed, sealed + size, NULL, content, size, <unsigned char *> record, HEADER, NULL, nonce, self.key):
            return 0
        return HEADER + size + self.extra

    cdef unsigned char open(self, char *record, size_t body, char *first, size_t first_size, char *second) noexcept nogil:
        cdef unsigned char *sealed = <unsigned char *> record + HEADER
        cdef size_t size = body - self.extra
        cdef unsigned char *content = sealed
        cdef unsigned char[16] nonce
        self.make_nonce(nonce)
        if first_size == size:
            content = <unsigned char *> first
        elif first_size == 0:
            content = <unsigned char *> second
        if decrypt(content, NULL, sealed, size, sealed + size, <unsigned char *> record, HEADER, nonce, self.key):
            return 0
        if content == sealed:
            memcpy(first, content, first_size)
            memcpy(second, content + first_size, size - first_size)
        return <unsigned char> record[0]


cdef void join(Part *parts, size_t offset, size_t size, unsigned char *place) noexcept nogil:
    """So many bytes of the parts, from `offset` in the first of them on, into one piece."""
    cdef size_t some
    while size:
        some = min(size, parts.iov_len - offset)
        memcpy(place, <char *> parts.iov_base + offset, some)
        place += some
        size -= some
        parts += 1
        offset = 0
