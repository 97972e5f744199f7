# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""Messages straight over the network, as a program in assembly would move them.

Both loops take three cycles a word: the word itself between memory and $CGNO or $CGNI, pointer, branch.
"""
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free

from ompy_raw.header cimport MOST_WORDS
from ompy_raw.tile cimport Tile

cdef enum:
    PER_WORD = 3
    PER_MESSAGE = 4                              # the header (IHDR), bounds of the next 31 words
    RUN_WORDS = 8192


def send(Tile tile not None, int destination, Py_ssize_t words, int misses_per_message=0) -> None:
    """Send zeros: `words` of them in messages of 31, each charged `misses_per_message` cycles of cache misses."""
    cdef uint32_t *run = <uint32_t *> calloc(RUN_WORDS, sizeof(uint32_t))
    cdef Py_ssize_t count = 0
    cdef int part
    try:
        while words:
            part = <int> min(words, <Py_ssize_t> MOST_WORDS)
            run[count] = tile.header_to(destination, part)
            count += 1 + part
            words -= part
            if words == 0 or count + 1 + MOST_WORDS > RUN_WORDS:
                tile.write(run, count, PER_WORD, PER_MESSAGE + misses_per_message)
                while count:
                    count -= 1
                    run[count] = 0
    finally:
        free(run)


def receive(Tile tile not None, Py_ssize_t words, int misses_per_message=0) -> None:
    """Receive so many words."""
    cdef uint32_t *run = <uint32_t *> calloc(RUN_WORDS, sizeof(uint32_t))
    cdef Py_ssize_t part
    try:
        while words:
            part = min(words, <Py_ssize_t> (MOST_WORDS if misses_per_message else RUN_WORDS))
            tile.read(run, part, PER_WORD)
            tile.charge(misses_per_message)
            words -= part
    finally:
        free(run)
