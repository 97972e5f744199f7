# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, binding=False
# distutils: extra_compile_args=-Os
"""The chip of a job: its ranks are processes of one host, rank r's program runs on tile r.

Whoever comes first makes the segment, and links it, once it is complete, to a name that all ranks know; whoever comes last
removes the name.
"""
import os
from zlib import crc32

from libc.stdint cimport int64_t

from ompy.core cimport clock
from ompy.core.segment cimport Segment, attach, create
from ompy_raw.chip cimport Chip

from ompy.core.segment import FILE_DIRECTORY, belong_to
from ompy.mca.errors import ParameterError
from ompy_raw.parameters import value
from ompy_raw.trace import save

# The tile of this process, while it is on the chip.
cdef Tile mine = None
cdef double cycles_per_second = 1


cdef double simulated_seconds(void *tile) noexcept:
    return (<Tile> tile).clock / cycles_per_second


cpdef Tile join(object context):
    global mine, cycles_per_second
    rte = context.rte
    width, height = value("width"), value("height")
    check_room(rte, width, height)
    if mine is None:
        cycles_per_second = 1e6 * value("clock_mhz")
        mine = Tile(shared_chip(rte, width, height), rte.rank)
        mine.set_watchdog(value("watchdog"))
        clock.replace(simulated_seconds, <void *> mine, 1 / cycles_per_second, mine)
    return mine


def check_room(rte, int width, int height) -> None:
    """Raises ParameterError when the job does not fit the chip."""
    if rte.size > width * height:
        side = next(side for side in range(1, 33) if side * side >= rte.size or side == 32)
        raise ParameterError(
            f"{rte.size} ranks do not fit the Raw chip of {width} x {height} tiles, one rank a tile: "
            f"`--mca machine_raw_width {side} --mca machine_raw_height {side}` makes it larger (32 x 32 at most)"
        )
    if rte.local_size < rte.size:
        raise ParameterError(
            f"the Raw chip is simulated by processes of one host, and only {rte.local_size} of the job's {rte.size} ranks are "
            "on this one: start them all here"
        )


cdef Chip shared_chip(rte, int width, int height):
    cdef bint traced = bool(value("trace"))
    cdef Chip chip = Chip(width, height, 0, value("trace_words") * traced, value("trace_samples") * traced, False)
    belong_to(rte.job)
    name = f"{FILE_DIRECTORY}/ompy-raw.{rte.job.replace('/', '-')}.{crc32(rte.secret):08x}"
    if not os.path.exists(name):
        make_segment(chip, name, rte.size)
    if chip.segment is None:
        chip.segment = attach(name.encode(), chip.lay_out(value("staging"), NULL, False))
        chip.lay_out(value("staging"), chip.segment.address, False)
    if (chip.state.width, chip.state.height, chip.state.expected) != (width, height, rte.size):
        raise ParameterError(f"rank {rte.rank} wants another Raw chip than its peers: give every rank the same parameters")
    if chip.count_in(rte.rank) == rte.size:
        os.unlink(name)
    if traced:
        chip.on_deadlock = record
    return chip


cdef int make_segment(Chip chip, str name, int programs) except -1:
    """Unless another rank was quicker: then the chip stays without one."""
    cdef int staging = value("staging")
    cdef Segment segment = create("ompy-raw", chip.lay_out(staging, NULL, False), "file")
    try:
        chip.lay_out(staging, segment.address, True)
        chip.expect(programs)
        chip.state.patience = 1_000_000 * <int64_t> value("patience")
        os.link(segment.path, name)
        chip.segment = segment
    except FileExistsError:
        pass
    finally:
        segment.seal()
    return 0


def record(Chip chip not None) -> None:
    """Saves the run for `ompy raw view`."""
    save(chip, value("trace"), cycles_per_second)


cpdef int leave(Tile tile, object context) except -1:
    global mine
    if mine is None:
        return 0
    mine = None
    tile.leave()
    if value("trace") and tile.chip.all_left():
        record(tile.chip)
    context.inform(
        f"times are simulated: {tile.clock} cycles of the Raw chip, {tile.clock / cycles_per_second:.6f} s at "
        f"{cycles_per_second / 1e6:g} MHz"
    )
    return 0
