# The pickle of a plain object, written straight into memory.
#
# Plain is what consists of None, booleans, numbers, ASCII text and bytes in lists, tuples and dicts, of these very types.
# pickle asks no reducer about them and finds no buffer in them, so its opcodes can be written without a pickler, its memo and
# its frames; any `loads` reads them:
#
#     {"a": 1}      80 05 | 7d | 8c 01 61 | 4b 01 | 73 | 2e
#                   PROTO   EMPTY_DICT  "a"     1     SETITEM  STOP
#
# Without a memo, an object that stands in two places would come out as two; so a list, tuple or dict that is met again is not
# plain, and neither is what does not fit: those are pickle's.

cdef enum:
    PLAIN_ROOM = 2048

# Writes the pickle to `room`, of PLAIN_ROOM bytes; returns its length, 0 for an object that is not plain.
cdef Py_ssize_t pickle_plainly(object obj, char *room) noexcept
