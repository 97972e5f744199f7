"""Random programs on files against a bytearray: what is in the file after each phase, and what every read and status says.

    ompyrun -n 3 python tests/mpi/file_programs.py --programs 20000 --seed 1       the long form of test_file_random.py

Every rank draws the same program, so each knows what the others do.  In one phase ranks read, or write bytes that are no
other's.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ompy import MPI

ETYPES = (MPI.BYTE, MPI.SHORT, MPI.INT, MPI.DOUBLE)
# Names of the methods of an access: pointer, then how it goes on.
WAYS = ("at", "own", "common")
FORMS = ("blocking", "nonblocking", "split")


@dataclass
class Layout:
    """A view as a plain list: where the data bytes of one filetype lie, and how far it is to the next."""

    etype: Any
    filetype: Any
    offsets: np.ndarray
    extent: int
    disp: int = 0

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
    return [memory, 1, etype.Create_vector(count, 1, step)], memory, blocks(np.arange(count) * step * e, e)


def call(file: Any, writing: bool, way: str, form: str, collective: bool, offset: int, buf: Any, status: Any) -> None:
    """The method that the words name."""
    name = "write" if writing else "read"
    arguments = [offset, buf] if way == "at" else [buf]
    if way == "common":
        suffix = "_ordered" if collective else "_shared"
    else:
        suffix = ("_at" if way == "at" else "") + ("_all" if collective else "")
    if form == "split" and collective:
        getattr(file, f"{name.capitalize()}{suffix}_begin")(*arguments)
        getattr(file, f"{name.capitalize()}{suffix}_end")(buf, status)
    elif form == "nonblocking" and suffix != "_ordered":
        getattr(file, f"I{name}{suffix}")(*arguments).Wait(status)
    else:
        getattr(file, f"{name.capitalize()}{suffix}")(*arguments, status)


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
        dice = self.dice
        hints = {
            "cb_buffer_size": str(dice.choice([4096, 8192, 1 << 20])),
            "ind_rd_buffer_size": str(dice.choice([4096, 1 << 20])),
            "ind_wr_buffer_size": str(dice.choice([4096, 1 << 20])),
            "romio_ds_read": dice.choice(["automatic", "enable", "disable"]),
            "romio_ds_write": dice.choice(["automatic", "enable", "disable"]),
            "romio_cb_write": dice.choice(["automatic", "enable", "disable"]),
            "romio_cb_read": dice.choice(["automatic", "enable", "disable"]),
        }
        mode = MPI.MODE_RDWR | MPI.MODE_CREATE | dice.choice([0, MPI.MODE_UNIQUE_OPEN])
        self.story.append(f"open, mode {mode}, {hints}")
        if self.comm.rank == 0 and os.path.exists(self.path):
            os.unlink(self.path)  # of a program that failed
        self.comm.Barrier()
        file = MPI.File.Open(self.comm, self.path, mode, MPI.Info.Create(hints))
        self.state = State(0, [], [0] * self.comm.size)
        self.set_view(file)
        if dice.random() < 0.15:
            self.story.append("atomic")
            file.Set_atomicity(True)
        for _ in range(dice.randint(1, 7)):
            getattr(self, dice.choice(["write", "write", "write", "read", "read", "set_view", "sizes"]))(file)
        file.Close()
        self.compare()
        self.comm.Barrier()
        if self.comm.rank == 0:
            MPI.File.Delete(self.path)

    def set_view(self, file: Any) -> None:
        state, dice = self.state, self.dice
        etype = dice.choice(ETYPES)
        seed, together = dice.random(), dice.random() < 0.7
        state.layouts = [
            random_view(random.Random(seed if together else f"{seed} {rank}"), etype, rank, self.comm.size)
            for rank in range(self.comm.size)
        ]
        disp = dice.choice([0, 0, 5, 4096, 1000])
        for layout in state.layouts:
            layout.disp = disp
        state.pointers, state.shared = [0] * self.comm.size, 0
        mine = state.layouts[self.comm.rank]
        self.story.append(
            f"view: disp {disp}, etype {etype.Get_name()}, {[(it.offsets[:9].tolist(), it.extent) for it in state.layouts]}"
        )
        file.Set_view(disp, etype, mine.filetype)

    def sizes(self, file: Any) -> None:
        content, size = self.state.content, self.dice.choice([0, 1, 100, 5000])
        if self.dice.random() < 0.5:
            self.story.append(f"set size {size}")
            file.Set_size(size)
            self.state.content = content[:size] + bytes(max(0, size - len(content)))
        else:
            self.story.append(f"preallocate {size}")
            file.Preallocate(size)
            content.extend(bytes(max(0, size - len(content))))
        if file.Get_size() != len(self.state.content):
            self.fail(f"size {file.Get_size()}, not {len(self.state.content)}")
        self.comm.Barrier()

    def drawn(self) -> tuple[str, str, bool, list[tuple[int, int]]]:
        """A kind of access, and (offset, count) in etypes of each rank; count -1: the rank takes no part."""
        dice, state, ranks = self.dice, self.state, range(self.comm.size)
        way, form, collective = dice.choice(WAYS), dice.choice(FORMS), dice.random() < 0.6
        most = dice.choice([3, 30, 300])
        asked = [(dice.choice([0, 0, 1, 17]), dice.randint(0, most)) for _ in ranks]
        if way == "common":
            # Who comes first is not known where several ranks come by themselves.
            alone = dice.choice(ranks)
            counts = [count if collective or rank == alone else -1 for rank, (_, count) in enumerate(asked)]
            starts = [state.shared + sum(max(count, 0) for count in counts[:rank]) for rank in ranks]
            asked = list(zip(starts, counts, strict=True))
            state.shared += sum(max(count, 0) for count in counts)
        elif way == "own":
            asked = [(state.pointers[rank], count) for rank, (_, count) in enumerate(asked)]
        return way, form, collective, asked

    def advance(self, way: str, asked: list[tuple[int, int]]) -> None:
        if way == "own":
            for rank, (_, count) in enumerate(asked):
                self.state.pointers[rank] += max(count, 0)

    def write(self, file: Any) -> None:
        state = self.state
        before = state.shared
        way, form, collective, asked = self.drawn()
        e = state.layouts[0].etype.size
        taken = np.zeros(0, np.int64)
        for rank, (offset, count) in enumerate(asked):
            places = state.layouts[rank].places(offset * e, max(count, 0) * e)
            if len(np.intersect1d(places, taken)):
                if way == "common":
                    # The others' places follow from this count: give the phase up.
                    state.shared = before
                    return
                asked[rank] = offset, 0
                continue
            taken = np.concatenate([taken, places])
        data = [self.dice.randbytes(max(count, 0) * e) for _, count in asked]
        self.story.append(f"write {way} {form} {'collective' if collective else ''} {asked}")
        self.carry_out(file, True, way, form, collective, asked, data[self.comm.rank])
        self.advance(way, asked)
        for rank, (offset, count) in enumerate(asked):
            state.write(state.layouts[rank].places(offset * e, max(count, 0) * e), data[rank])
        self.comm.Barrier()
        self.compare()
        self.comm.Barrier()

    def read(self, file: Any) -> None:
        way, form, collective, asked = self.drawn()
        self.story.append(f"read {way} {form} {'collective' if collective else ''} {asked}")
        self.carry_out(file, False, way, form, collective, asked, b"")
        self.advance(way, asked)
        self.comm.Barrier()

    def carry_out(
        self, file: Any, writing: bool, way: str, form: str, collective: bool, asked: list[tuple[int, int]], data: bytes
    ) -> None:
        rank, layout = self.comm.rank, self.state.layouts[self.comm.rank]
        offset, count = asked[rank]
        dice = random.Random(f"{self.seed} {rank} {len(self.story)}")
        buf, memory, inside = memory_of(dice, layout.etype, max(count, 0))
        status = MPI.Status()
        if writing:
            memory[inside] = np.frombuffer(data, np.uint8)
        untouched = memory.copy()
        if count >= 0:
            call(file, writing, way, form, collective, offset, buf, status)
            e = layout.etype.size
            expected = data if writing else self.state.read(layout.places(offset * e, count * e))
            if status.Get_count(MPI.BYTE) != len(expected):
                self.fail(f"status says {status.Get_count(MPI.BYTE)} bytes, not {len(expected)}")
            untouched[inside[: len(expected)]] = np.frombuffer(expected, np.uint8)
            if (memory != untouched).any():
                self.fail(f"memory differs first at byte {int(np.flatnonzero(memory != untouched)[0])}")

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
