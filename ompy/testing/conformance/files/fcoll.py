"""Accesses that ranks carry out together."""

from __future__ import annotations

import itertools

from ompy.core.errors import MPIError
from ompy.core.file import MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_RDWR, MODE_UNIQUE_OPEN, File
from ompy.core.memory import address_of
from ompy.core.view import View
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.files.accesses import BYTE, UNTOUCHED, access, compare, content_of, memories, places, put
from ompy.testing.conformance.files.rank import FileRank
from ompy.testing.conformance.held import leaks

check = Collection()

# Also where the holes of a view may be written: nobody else has the file open.
MODES = (MODE_RDWR | MODE_CREATE | MODE_DELETE_ON_CLOSE, MODE_RDWR | MODE_CREATE | MODE_DELETE_ON_CLOSE | MODE_UNIQUE_OPEN)
WINDOWS = ("4096", "1048576")


def interleaved(number: int, ranks: int, piece: int, gap: int) -> View:
    """What rank `number` sees: a piece of each rank in turn, then a gap."""
    return View(number * piece, BYTE, BYTE.create_contiguous(piece).create_resized(0, ranks * piece + gap))


@check("offer", "bytes", "bounds")
def interleaved_pieces_of_all_ranks(rank: FileRank) -> None:
    dice = rank.common_random("interleaved")
    for mode, window in itertools.product(MODES, WINDOWS):
        with rank.file(mode=mode, cb_buffer_size=window) as file:
            model = bytearray()
            for _ in range(12):
                piece, gap, position = dice.choice([1, 8, 100, 20000]), dice.choice([0, 0, 3, 5000]), dice.choice([0, 1, 50])
                whole = dice.choice([1, 300, 9000])
                sizes = [dice.choice([0, whole, whole, whole + 1]) for _ in range(rank.size)]
                words = f"pieces of {piece}, gaps of {gap}, {sizes} bytes from byte {position} of each view on"
                seen = [interleaved(number, rank.size, piece, gap) for number in range(rank.size)]
                datas = [dice.randbytes(size) for size in sizes]
                layout = dice.randrange(2)
                write(rank, file, seen[rank.rank], position, datas[rank.rank], layout, words)
                for view, data in zip(seen, datas, strict=True):
                    put(model, places(view, position, len(data)), data)
                rank.exchange(None)
                compare(content_of(file), model, "bytes", f"the file after writing {words}")
                rank.exchange(None)
                read(rank, file, seen[rank.rank], position, model, sizes[rank.rank] + 700, layout, words)
                rank.exchange(None)
                rank.alive()


def write(rank: FileRank, file: File, view: View, position: int, data: bytes, layout: int, words: str) -> None:
    memory = memories(len(data))[layout]
    memory.put(data)
    moved = rank.module(file).write_all(access(view, position, memory, writing=True, collective=True))
    if moved != len(data):
        raise Breach("bytes", f"{words}: {moved} were written")


def read(rank: FileRank, file: File, view: View, position: int, model: bytearray, asked: int, layout: int, words: str) -> None:
    memory = memories(asked)[layout]
    wanted = bytearray(memory.whole)
    there = bytes(model[place] for place in places(view, position, asked) if place < len(model))
    moved = rank.module(file).read_all(access(view, position, memory, writing=False, collective=True))
    if moved != len(there):
        raise Breach("bytes", f"{words}: {moved} were read, {len(there)} are there")
    for place, value in zip(memory.places, there, strict=False):
        wanted[place] = value
    compare(memory.whole, wanted, "bytes", f"the memory after reading {words}")


@check("bounds", ranks=2)
def pieces_that_overlap_leave_holes_alone(rank: FileRank) -> None:
    """Two ranks write one block, and another one of the same length nobody: as many bytes as if the blocks were tiles."""
    dice = rank.common_random("overlapping")
    for mode, window in itertools.product(MODES, WINDOWS):
        with rank.file(mode=mode, cb_buffer_size=window) as file:
            for _ in range(12):
                piece, blocks, tiles = dice.choice([1, 8, 100, 2000]), dice.choice([5, 9]), dice.choice([1, 7])
                owners = [{dice.randrange(rank.size)} for _ in range(blocks)]
                hole, twice = dice.sample(range(1, blocks - 1), 2)
                owners[hole], owners[twice] = set(), set(dice.sample(range(rank.size), 2))
                words = f"{tiles} times blocks of {piece} bytes by the ranks {owners}"
                whole = bytearray([UNTOUCHED]) * (piece * blocks * tiles)
                if rank.rank == 0:
                    file.parts["fbtl"].store(address_of(whole), len(whole), 0)
                rank.exchange(None)
                own = [block for block, ranks in enumerate(owners) if rank.rank in ranks]
                filetype = BYTE.create_contiguous(piece).create_indexed([1] * len(own), own) if own else BYTE
                view = View(0, BYTE, filetype.create_resized(0, piece * blocks))
                write(rank, file, view, 0, bytes([rank.rank]) * (piece * len(own) * tiles), dice.randrange(2), words)
                rank.exchange(None)
                content = content_of(file)[: len(whole)]
                for at, value in enumerate(content[::piece]):
                    wanted = owners[at % blocks] or {UNTOUCHED}
                    if value not in wanted or (piece > 1 and content[(at + 1) * piece - 1] not in wanted):
                        raise Breach("bounds", f"{words}: block {at % blocks} of tile {at // blocks} holds {value}")
                rank.exchange(None)
                rank.alive()


@check("forms")
def several_are_under_way(rank: FileRank) -> None:
    from ompy.core.progress import wait_request

    with rank.file() as file:
        module, view = rank.module(file), interleaved(rank.rank, rank.size, 10, 0)
        kept = [memories(1000)[0] for _ in range(6)]
        for number, memory in enumerate(kept):
            memory.put(bytes([10 * number + rank.rank]) * 1000)
        for form, writing in (("iwrite_all", True), ("iread_all", False)):
            requests = []
            for number, memory in enumerate(kept):
                made = access(view, 1000 * number, memory, writing=writing, collective=True)
                requests.append(getattr(module, form)(made))
            for request in reversed(requests):
                wait_request(request)
                if request.error is not None:
                    raise request.error
            for number, memory in enumerate(kept):
                compare(memory.whole, bytes([10 * number + rank.rank]) * 1000, "forms", f"{form}, number {number}")


@check("errors", ranks=2)
def nobody_waits_for_a_rank_that_can_t_finish(rank: FileRank) -> None:
    """The last rank's bytes are farther than a file can reach."""
    with rank.file(cb_buffer_size="65536") as file:
        last = rank.rank == rank.size - 1
        view = View(1 << 61 if last else rank.rank, BYTE, BYTE.create_resized(0, rank.size))
        memory = memories(1000)[0]
        try:
            rank.module(file).write_all(access(view, 0, memory, writing=True, collective=True))
        except MPIError as error:
            if file.path not in str(error):
                raise Breach("errors", f"{error}: does not name {file.path}") from None
        else:
            if last:
                raise Breach("errors", "bytes were written farther than a file can reach")


@check("free")
def modules_give_back_what_they_held(rank: FileRank) -> None:
    def use() -> None:
        with rank.file() as file:
            view, memory = interleaved(rank.rank, rank.size, 10, 0), memories(10_000)[0]
            rank.module(file).write_all(access(view, 0, memory, writing=True, collective=True))

    if found := leaks(use, 10):
        raise Breach("free", f"files that all ranks have written together, {found}")
