# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The first word of every message on the network.  See `header.pxd`."""

SIDE_NAMES = ("processor", "north", "east", "south", "west")


def pack(int length, int x, int y, int final=PROCESSOR) -> int:
    """The header of a message of `length` words to the tile at (x, y).

    Raises:
        ValueError: a field does not fit.
    """
    if not 1 <= length <= MOST_WORDS:
        raise ValueError(f"a message has 1 to {MOST_WORDS} words, not {length}")
    if not (0 <= x < MOST_TILES_ASIDE and 0 <= y < MOST_TILES_ASIDE):
        raise ValueError(f"no tile is at ({x}, {y}): x and y are 0 to {MOST_TILES_ASIDE - 1}")
    if not 0 <= final < SIDES:
        raise ValueError(f"a final route is 0 to {SIDES - 1} ({', '.join(SIDE_NAMES)}), not {final}")
    return make_header(length, x, y, final)


def unpack(unsigned int header) -> tuple[int, int, int, int]:
    """(length, x, y, final route) of a header word."""
    return length_of(header), x_of(header), y_of(header), final_of(header)
