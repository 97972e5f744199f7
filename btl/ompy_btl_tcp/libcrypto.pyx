# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
"""The ciphers of OpenSSL's libcrypto; see `libcrypto.pxd`."""
import os

from libc.string cimport memcpy
from posix.dlfcn cimport RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym

from ompy_btl_tcp.cipher cimport APPLICATION, HEADER, Cipher, make_header
from ompy_btl_tcp.wire cimport Part

cdef extern from *:
    """
    #include <stddef.h>
    /* What is used of libcrypto, 1.1.1 and 3, as its manual pages declare it. */
    static struct {
        void *(*new_context)(void);
        void (*free_context)(void *);
        const void *(*aes_128_gcm)(void), *(*aes_256_gcm)(void), *(*chacha20_poly1305)(void);
        int (*init)(void *, const void *, void *, const unsigned char *, const unsigned char *, int);
        int (*update)(void *, unsigned char *, int *, const unsigned char *, int);
        int (*final)(void *, unsigned char *, int *);
        int (*control)(void *, int, int, void *);
    } ompy_tcp_crypto;
    static const char *const ompy_tcp_crypto_names[] = {
        "EVP_CIPHER_CTX_new", "EVP_CIPHER_CTX_free", "EVP_aes_128_gcm", "EVP_aes_256_gcm", "EVP_chacha20_poly1305",
        "EVP_CipherInit_ex", "EVP_CipherUpdate", "EVP_CipherFinal_ex", "EVP_CIPHER_CTX_ctrl",
    };
    enum { OMPY_TCP_FUNCTIONS = sizeof ompy_tcp_crypto / sizeof(void *) };
    """
    ctypedef struct Crypto:
        void *(*new_context)() noexcept nogil
        void (*free_context)(void *) noexcept nogil
        const void *(*aes_128_gcm)() noexcept nogil
        const void *(*aes_256_gcm)() noexcept nogil
        const void *(*chacha20_poly1305)() noexcept nogil
        int (*init)(void *, const void *, void *, const unsigned char *, const unsigned char *, int) noexcept nogil
        int (*update)(void *, unsigned char *, int *, const unsigned char *, int) noexcept nogil
        int (*final)(void *, unsigned char *, int *) noexcept nogil
        int (*control)(void *, int, int, void *) noexcept nogil
    Crypto crypto "ompy_tcp_crypto"
    const char *const *crypto_names "ompy_tcp_crypto_names"
    enum:
        FUNCTIONS "OMPY_TCP_FUNCTIONS"

cdef enum:
    TAG = 16                                     # bytes, of each of them
    GET_TAG = 0x10                               # EVP_CTRL_AEAD_GET_TAG
    SET_TAG = 0x11
cdef str loaded = None                           # by the name that was asked for


def load(str name not None):
    """Find the library of that name; "": the one of this Python.  OSError, in words for people, where there is none."""
    global loaded
    cdef void *library = NULL
    cdef void *found[FUNCTIONS]
    if loaded is not None:
        if name != loaded:
            raise OSError(f"btl_tcp_libcrypto: this process has {loaded or 'that of its ssl'} already, and can't have another")
        return
    if "/" in name and os.path.exists(name) and not os.path.isfile(name):
        raise OSError(f"btl_tcp_libcrypto: {name} is no regular file")  # to open a pipe would wait
    for path in (name,) if name else (*mapped(), "libcrypto.so.3", "libcrypto.so.1.1"):
        library = dlopen(os.fsencode(path), RTLD_NOW | RTLD_LOCAL)
        if library != NULL:
            break
    else:
        if name:
            raise OSError(f"btl_tcp_libcrypto: {dlerror().decode()}")
        raise OSError("OpenSSL's libcrypto.so.3 is not installed (Debian: libssl3)")
    for index in range(FUNCTIONS):
        found[index] = dlsym(library, crypto_names[index])
        if found[index] == NULL:
            raise OSError(f"btl_tcp_libcrypto: {path} has no {crypto_names[index].decode()}" if name else
                          f"{path} has no {crypto_names[index].decode()}")
    memcpy(&crypto, found, sizeof(crypto))
    loaded = name


def mapped():
    """The libcrypto that this process uses already, by its path."""
    __import__("ssl")                            # which brings the library
    try:
        with open("/proc/self/maps") as maps:
            lines = [line.split(maxsplit=5) for line in maps]
    except OSError:
        return []
    return list(dict.fromkeys(words[5].strip() for words in lines if len(words) == 6 and "/libcrypto" in words[5]))


cdef class Libcrypto(Cipher):
    """See `Cipher`."""

    def __cinit__(self, *_):
        if loaded is None:
            load("")
        self.context = crypto.new_context()
        if self.context == NULL:
            raise MemoryError("no memory for a cipher")

    def __dealloc__(self):
        if self.context != NULL:
            crypto.free_context(self.context)

    cdef int take_key(self, const unsigned char *key) except -1:
        cdef const void *algorithm
        if self.secret.name == "TLS_AES_256_GCM_SHA384":
            algorithm = crypto.aes_256_gcm()
        elif self.secret.name == "TLS_AES_128_GCM_SHA256":
            algorithm = crypto.aes_128_gcm()
        else:
            algorithm = crypto.chacha20_poly1305()
        if not crypto.init(self.context, algorithm, NULL, key, NULL, self.seals):
            raise OSError(f"libcrypto can't do {self.secret.name}")
        return 0

    cdef bint begin(self, const char *header) noexcept nogil:
        cdef unsigned char[12] nonce
        cdef int size
        self.make_nonce(nonce)
        return crypto.init(self.context, NULL, NULL, NULL, nonce, -1) and crypto.update(
            self.context, NULL, &size, <const unsigned char *> header, HEADER)

    cdef size_t seal(self, Part *parts, size_t offset, size_t size, unsigned char kind, char *record) noexcept nogil:
        cdef unsigned char *place = <unsigned char *> record + HEADER
        cdef size_t body = size + 1 + TAG
        cdef size_t some
        cdef int done
        make_header(record, APPLICATION, body)
        if not self.begin(record):
            return 0
        while size:
            some = min(size, parts.iov_len - offset)
            if some and not crypto.update(self.context, place, &done, <unsigned char *> parts.iov_base + offset, <int> some):
                return 0
            place += some
            size -= some
            parts += 1
            offset = 0
        if not crypto.update(self.context, place, &done, &kind, 1) or not crypto.final(self.context, place + 1, &done) \
                or not crypto.control(self.context, GET_TAG, TAG, place + 1):
            return 0
        return HEADER + body

    cdef unsigned char open(self, char *record, size_t body, char *first, size_t first_size, char *second) noexcept nogil:
        cdef const unsigned char *place = <const unsigned char *> record + HEADER
        cdef size_t size = body - TAG - 1
        cdef unsigned char kind
        cdef unsigned char[TAG] nothing
        cdef int done
        if not self.begin(record):
            return 0
        if first_size and not crypto.update(self.context, <unsigned char *> first, &done, place, <int> first_size):
            return 0
        if size > first_size and not crypto.update(
                self.context, <unsigned char *> second, &done, place + first_size, <int> (size - first_size)):
            return 0
        if not crypto.update(self.context, &kind, &done, place + size, 1) \
                or not crypto.control(self.context, SET_TAG, TAG, <void *> (place + size + 1)) \
                or not crypto.final(self.context, nothing, &done):
            return 0
        return kind
