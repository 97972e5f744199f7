"""Random programs on files against a bytearray: what is in the file after each phase, and what every read and status says.

    ompyrun -n 3 python tests/mpi/file_programs.py --programs 20000 --seed 1       the long form of test_file_random.py

Every rank draws the same program, so each knows what the others do.  In one phase ranks read, or write bytes that are no
other's, by one access or by several that are under way at a time.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ompy import MPI

ETYPES = (MPI.BYTE, MPI.SHORT, MPI.INT, MPI.DOUBLE)
# Names of the methods of an access: pointer, then how it goes on.
WAYS = ("at", "own", "common")
FORMS = ("blocking", "nonblocking", "split")
REPRESENTATIONS = ("native", "native", "native", "internal", "external32")
# How a file is opened again.
MODES = (
    MPI.MODE_RDWR,
    MPI.MODE_RDWR | MPI.MODE_UNIQUE_OPEN,
    MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_APPEND,
    MPI.MODE_RDONLY,
    MPI.MODE_WRONLY,
    MPI.MODE_WRONLY | MPI.MODE_APPEND,
)


@dataclass
class Layout:
    """A view as a plain list: where the data bytes of one filetype lie, and how far it is to the next."""

    etype: Any
    filetype: Any
    offsets: np.ndarray
    extent: int
    disp: int = 0
    swapped: bool = False

    def stored(self, data: bytes) -> bytes:
        """Whole etypes as the file has them, or of the file's as memory has them."""
        if not self.swapped:
            return data
        return np.frombuffer(data, np.uint8).reshape(-1, self.etype.size)[:, ::-1].tobytes()

    def places(self, start: int, nbytes: int) -> np.ndarray:
        """Offsets in the file of some data bytes of the view."""
        positions = np.arange(start, start + nbytes, dtype=np.int64)
        size = len(self.offsets)
        return self.disp + positions // size * self.extent + self.offsets[positions % size]


def blocks(starts: Any, length: int) -> np.ndarray:
    return (np.asarray(starts, np.int64)[:, None] + np.arange(length)).reshape(-1)


def random_view(dice: random.Random, etype: Any, rank: int, size: int) -> Layout:
    """One rank's view: interleaved with those of the others, or any."""
    e = etype.size
    kind = dice.choice(["plain", "interleaved", "interleaved", "indexed", "subarray", "cyclic", "nested"])
    if kind == "plain":
        return Layout(etype, etype, np.arange(e), e)
    if kind == "interleaved":
        length, tail = dice.choice([1, 2, 3, 40]), dice.choice([0, 0, 1, 3])
        step = size * length + tail
        made = etype.Create_hindexed([length], [rank * length * e]).Create_resized(0, step * e)
        return Layout(etype, made, rank * length * e + np.arange(length * e), step * e)
    if kind == "indexed":
        lengths = [dice.randint(1, 4) for _ in range(dice.randint(1, 5))]
        starts, at = [], 0
        for length in lengths:
            at += dice.choice([0, 0, 1, 2, 7])
            starts.append(at)
            at += length
        places = np.concatenate([blocks([start * e], length * e) for start, length in zip(starts, lengths, strict=True)])
        extent = (at + dice.choice([0, 1, 5])) * e
        return Layout(etype, etype.Create_indexed(lengths, starts).Create_resized(0, extent), places, extent)
    if kind == "subarray":
        rows, columns = dice.randint(1, 6), size * dice.randint(1, 3)
        width = columns // size
        made = etype.Create_subarray([rows, columns], [rows, width], [0, rank * width])
        places = blocks([(row * columns + rank * width) * e for row in range(rows)], width * e)
        return Layout(etype, made, places, rows * columns * e)
    if kind == "cyclic":
        block, total = dice.randint(1, 3), dice.randint(size, 30)
        made = etype.Create_darray(size, rank, [total], [MPI.DISTRIBUTE_CYCLIC], [block], [size])
        mine = [index for index in range(total) if index // block % size == rank]
        if not mine:
            return Layout(etype, etype, np.arange(e), e)
        return Layout(etype, made, blocks([index * e for index in mine], e), total * e)
    inner = etype.Create_vector(dice.randint(1, 3), 1, 2)
    count, gap = dice.randint(1, 3), inner.extent + dice.choice([e, 3 * e])
    per = inner.size // e
    places = blocks([k * gap + i * 2 * e for k in range(count) for i in range(per)], e)
    extent = count * gap + dice.choice([0, e])
    return Layout(etype, inner.Create_hvector(count, 1, gap).Create_resized(0, extent), places, extent)


@dataclass
class State:
    """What all ranks know of the file."""

    size: int
    layouts: list[Layout]
    pointers: list[int]
    shared: int = 0
    content: bytearray = field(default_factory=bytearray)

    def write(self, places: np.ndarray, data: bytes) -> None:
        if len(places):
            end = int(places.max()) + 1
            if end > len(self.content):
                self.content.extend(bytes(end - len(self.content)))
            np.frombuffer(self.content, np.uint8)[places] = np.frombuffer(data, np.uint8)

    def read(self, places: np.ndarray) -> bytes:
        there = places[: int(np.searchsorted(places, len(self.content)))]
        return np.frombuffer(self.content, np.uint8)[there].tobytes() if len(there) else b""


def memory_of(dice: random.Random, etype: Any, count: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """A buffer argument for `count` etypes, its bytes, and where in them the data are: one run, or with gaps."""
    e = etype.size
    if count == 0 or dice.random() < 0.6:
        memory = np.full(count * e, 0xEE, np.uint8)
        return [memory, count, etype], memory, np.arange(count * e)
    step = dice.randint(2, 4)
    memory = np.full(count * step * e, 0xEE, np.uint8)
    return [memory, 1, etype.Create_vector(count, 1, step).Commit()], memory, blocks(np.arange(count) * step * e, e)


def call(file: Any, writing: bool, way: str, form: str, collective: bool, offset: int, buf: Any, status: Any) -> Any:
    """The method that the words name; "pending" leaves its request."""
    name = "write" if writing else "read"
    arguments = [offset, buf] if way == "at" else [buf]
    if way == "common":
        suffix = "_ordered" if collective else "_shared"
    else:
        suffix = ("_at" if way == "at" else "") + ("_all" if collective else "")
    if form == "split" and collective:
        getattr(file, f"{name.capitalize()}{suffix}_begin")(*arguments)
        getattr(file, f"{name.capitalize()}{suffix}_end")(buf, status)
    elif form == "pending":
        return getattr(file, f"I{name}{suffix}")(*arguments)
    elif form == "nonblocking" and suffix != "_ordered":
        getattr(file, f"I{name}{suffix}")(*arguments).Wait(status)
    else:
        getattr(file, f"{name.capitalize()}{suffix}")(*arguments, status)
    return None


class Drawn(NamedTuple):
    """An access of all ranks, in words of `call`; `asked` has (offset, count) in etypes of each rank, count -1 where it takes
    no part."""

    way: str
    form: str
    collective: bool
    asked: list[tuple[int, int]]


class Program:
    """One random program."""

    def __init__(self, comm: Any, seed: int, folder: str) -> None:
        self.comm, self.seed = comm, seed
        self.dice = random.Random(seed)
        self.path = os.path.join(folder, f"program-{seed}")
        self.story: list[str] = []

    def fail(self, words: str) -> None:
        lines = "\n  ".join(self.story)
        raise AssertionError(f"seed {self.seed}, rank {self.comm.rank} of {self.comm.size}: {words}\n  {lines}")

    def run(self) -> None:
        if self.comm.rank == 0 and os.path.exists(self.path):
            os.unlink(self.path)  # of a program that failed
        self.comm.Barrier()
        self.state = State(0, [], [0] * self.comm.size)
        self.open(MPI.MODE_RDWR | MPI.MODE_CREATE | self.dice.choice([0, MPI.MODE_UNIQUE_OPEN]))
        self.set_view()
        for _ in range(self.dice.randint(1, 7)):
            self.draw()()
        self.file.Close()
        self.compare()
        self.comm.Barrier()
        if self.comm.rank == 0:
            MPI.File.Delete(self.path)

    def draw(self) -> Callable[[], None]:
        """What the access mode allows."""
        reads, writes = [self.read, self.read, self.read_several], [self.write, self.write, self.write, self.write_several]
        ways: list[Callable[[], None]] = [self.set_view, self.reopen]
        if not self.mode & MPI.MODE_WRONLY:
            ways += reads
        if not self.mode & MPI.MODE_RDONLY:
            ways += [*writes, self.sizes]
        return self.dice.choice(ways)

    def open(self, mode: int) -> None:
        """The view is the whole file, and pointers are at its start, or at its end."""
        dice, state = self.dice, self.state
        hints = {
            "cb_buffer_size": str(dice.choice([4096, 8192, 1 << 20])),
            "cb_nodes": str(dice.choice([0, 1, 2])),
            "ind_rd_buffer_size": str(dice.choice([4096, 1 << 20])),
            "ind_wr_buffer_size": str(dice.choice([4096, 1 << 20])),
            "romio_ds_read": dice.choice(["automatic", "enable", "disable"]),
            "romio_ds_write": dice.choice(["automatic", "enable", "disable"]),
            "romio_cb_write": dice.choice(["automatic", "enable", "disable"]),
            "romio_cb_read": dice.choice(["automatic", "enable", "disable"]),
        }
        self.mode = mode
        self.story.append(f"open, mode {mode}, {hints}")
        self.file = MPI.File.Open(self.comm, self.path, mode, MPI.Info.Create(hints))
        start = len(state.content) if mode & MPI.MODE_APPEND else 0
        state.layouts = [Layout(MPI.BYTE, MPI.BYTE, np.arange(1), 1)] * self.comm.size
        state.pointers, state.shared = [start] * self.comm.size, start
        if (self.file.Get_position(), self.file.Get_position_shared()) != (start, start):
            self.fail(f"pointers at {self.file.Get_position()} and {self.file.Get_position_shared()}, not at {start}")
        self.comm.Barrier()
        if dice.random() < 0.15:
            self.story.append("atomic")
            self.file.Set_atomicity(True)

    def reopen(self) -> None:
        self.file.Close()
        self.open(self.dice.choice(MODES))

    def set_view(self) -> None:
        state, dice = self.state, self.dice
        etype = dice.choice(ETYPES)
        seed, together = dice.random(), dice.random() < 0.7
        state.layouts = [
            random_view(random.Random(seed if together else f"{seed} {rank}"), etype, rank, self.comm.size)
            for rank in range(self.comm.size)
        ]
        disp = dice.choice([0, 0, 5, 4096, 1000])
        representation = dice.choice(REPRESENTATIONS)
        for layout in state.layouts:
            layout.disp, layout.swapped = disp, representation == "external32"
        state.pointers, state.shared = [0] * self.comm.size, 0
        mine = state.layouts[self.comm.rank]
        self.story.append(
            f"{representation} view: disp {disp}, etype {etype.Get_name()}, "
            f"{[(it.offsets[:9].tolist(), it.extent) for it in state.layouts]}"
        )
        self.file.Set_view(disp, etype, mine.filetype.Commit(), representation)

    def sizes(self) -> None:
        content, size = self.state.content, self.dice.choice([0, 1, 100, 5000])
        if self.dice.random() < 0.5:
            self.story.append(f"set size {size}")
            self.file.Set_size(size)
            self.state.content = content[:size] + bytes(max(0, size - len(content)))
        else:
            self.story.append(f"preallocate {size}")
            self.file.Preallocate(size)
            content.extend(bytes(max(0, size - len(content))))
        if self.file.Get_size() != len(self.state.content):
            self.fail(f"size {self.file.Get_size()}, not {len(self.state.content)}")
        self.comm.Barrier()

    def drawn(self, ways: tuple[str, ...] = WAYS) -> Drawn:
        """An access."""
        dice, state, ranks = self.dice, self.state, range(self.comm.size)
        way, form, collective = dice.choice(ways), dice.choice(FORMS), dice.random() < 0.6
        most = dice.choice([3, 30, 300])
        asked = [(dice.choice([0, 0, 1, 17]), dice.randint(0, most)) for _ in ranks]
        if way == "common":
            # Who comes first is not known where several ranks come by themselves.
            alone = dice.choice(ranks)
            counts = [count if collective or rank == alone else -1 for rank, (_, count) in enumerate(asked)]
            starts = [state.shared + sum(max(count, 0) for count in counts[:rank]) for rank in ranks]
            asked = list(zip(starts, counts, strict=True))
        elif way == "own":
            asked = [(state.pointers[rank], count) for rank, (_, count) in enumerate(asked)]
        return Drawn(way, form, collective, asked)

    def advance(self, drawn: Drawn) -> None:
        for rank, (_, count) in enumerate(drawn.asked):
            if drawn.way == "own":
                self.state.pointers[rank] += max(count, 0)
            elif drawn.way == "common":
                self.state.shared += max(count, 0)

    def places(self, rank: int, offset: int, count: int) -> np.ndarray:
        """Offsets in the file of some etypes of a rank's view."""
        e = self.state.layouts[rank].etype.size
        return self.state.layouts[rank].places(offset * e, max(count, 0) * e)

    def untangle(self, drawn: Drawn, taken: np.ndarray) -> np.ndarray | None:
        """Take no place twice: ranks that would, write nothing; returns all places, or None where that can't be."""
        for rank, (offset, count) in enumerate(drawn.asked):
            places = self.places(rank, offset, count)
            if len(np.intersect1d(places, taken)):
                if drawn.way == "common":
                    return None  # the others' places follow from this count
                drawn.asked[rank] = offset, 0
                continue
            taken = np.concatenate([taken, places])
        return taken

    def write(self) -> None:
        drawn = self.drawn()
        if self.untangle(drawn, np.zeros(0, np.int64)) is not None:
            self.carry_out(True, [drawn])

    def read(self) -> None:
        self.carry_out(False, [self.drawn()])

    def write_several(self) -> None:
        self.several(True)

    def read_several(self) -> None:
        self.several(False)

    def several(self, writing: bool) -> None:
        """Accesses that are all begun before one ends."""
        pointers, taken, all_drawn = list(self.state.pointers), np.zeros(0, np.int64), []
        for _ in range(self.dice.randint(2, 6)):
            drawn = self.drawn(("at", "own"))._replace(form="pending")
            if writing:
                more = self.untangle(drawn, taken)
                assert more is not None
                taken = more
            self.advance(drawn)
            all_drawn.append(drawn)
        self.state.pointers = pointers
        self.carry_out(writing, all_drawn)

    def carry_out(self, writing: bool, all_drawn: list[Drawn]) -> None:
        state, rank = self.state, self.comm.rank
        under_way = []
        for drawn in all_drawn:
            self.story.append(f"{'write' if writing else 'read'} {drawn}")
            datas = [
                self.dice.randbytes(max(count, 0) * state.layouts[0].etype.size if writing else 0) for _, count in drawn.asked
            ]
            if drawn.asked[rank][1] >= 0:
                under_way.append(self.begin(writing, drawn, datas[rank]))
            self.advance(drawn)
            for number, (offset, count) in enumerate(drawn.asked if writing else []):
                state.write(self.places(number, offset, count), state.layouts[number].stored(datas[number]))
        random.Random(f"{self.seed} {rank} {len(self.story)}").shuffle(under_way)
        for finish in under_way:
            finish()
        self.comm.Barrier()
        if writing:
            self.compare()
            self.comm.Barrier()

    def begin(self, writing: bool, drawn: Drawn, data: bytes) -> Callable[[], None]:
        """This rank's part; returns what waits for its end and looks at what it did."""
        rank, layout = self.comm.rank, self.state.layouts[self.comm.rank]
        offset, count = drawn.asked[rank]
        e = layout.etype.size
        buf, memory, inside = memory_of(random.Random(f"{self.seed} {rank} {len(self.story)}"), layout.etype, count)
        if writing:
            memory[inside] = np.frombuffer(data, np.uint8)
        untouched, status = memory.copy(), MPI.Status()
        expected = data
        if not writing:
            expected = self.state.read(self.places(rank, offset, count))
            if layout.swapped:
                expected = layout.stored(expected[: len(expected) // e * e])
        request = call(self.file, writing, drawn.way, drawn.form, drawn.collective, offset, buf, status)

        def finish() -> None:
            if request is not None:
                request.Wait(status)
            if status.Get_count(MPI.BYTE) != len(expected):
                self.fail(f"status of {drawn} says {status.Get_count(MPI.BYTE)} bytes, not {len(expected)}")
            untouched[inside[: len(expected)]] = np.frombuffer(expected, np.uint8)
            if (memory != untouched).any():
                self.fail(f"memory of {drawn} differs first at byte {int(np.flatnonzero(memory != untouched)[0])}")

        return finish

    def compare(self) -> None:
        if self.comm.rank == 0:
            with open(self.path, "rb") as source:
                there = source.read()
            if there != self.state.content:
                where = next((i for i, (a, b) in enumerate(zip(there, self.state.content, strict=False)) if a != b), "the end")
                self.fail(f"the file differs at byte {where}: {len(there)} bytes, expected {len(self.state.content)}")


def run(comm: Any, seed: int, programs: int, folder: str) -> None:
    """`programs` of them, from a seed on."""
    for number in range(programs):
        Program(comm, seed + number, folder).run()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    for begin in range(0, options.programs, 500):
        run(comm, options.seed + begin, min(500, options.programs - begin), options.folder)
        if comm.rank == 0:
            print(f"{min(begin + 500, options.programs)} programs of {comm.size} ranks", flush=True)


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        print(error, file=sys.stderr, flush=True)
        MPI.COMM_WORLD.Abort(1)
