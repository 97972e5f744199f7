"""Open files: accesses by offset and by pointer, views, sizes, atomic mode."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from ompy.core.errors import (
    ERR_FILE_EXISTS,
    ERR_NO_SUCH_FILE,
    ERR_NOT_SAME,
    ERR_OTHER,
    ERR_UNSUPPORTED_OPERATION,
    MPIError,
)
from ompy.core.file import (
    EXPLICIT,
    INDIVIDUAL,
    MODE_APPEND,
    MODE_CREATE,
    MODE_DELETE_ON_CLOSE,
    MODE_EXCL,
    MODE_RDONLY,
    MODE_RDWR,
    SEEK_CUR,
    SEEK_END,
    SEEK_SET,
    SHARED,
    Access,
    File,
)
from ompy.core.request import Request
from ompy.core.view import View
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.files.accesses import BYTE, Memory, compare, memories, places, put, views
from ompy.testing.conformance.files.accesses import access as placed
from ompy.testing.conformance.files.rank import FileRank
from ompy.testing.conformance.held import leaks

check = Collection()

SIZES = (0, 1, 5, 300, 2000)
POINTERS = (EXPLICIT, INDIVIDUAL, SHARED)
NAMES = {EXPLICIT: "by offset", INDIVIDUAL: "by the own pointer", SHARED: "by the shared pointer"}
QUAD = BYTE.create_contiguous(4)
TURNS = 40


def asked(file: File, memory: Memory, pointer: int, offset: int = 0, *, writing: bool, collective: bool = False) -> Access:
    """An access to all of the memory's data: where, is for the component to find out."""
    made = placed(file.view, 0, memory, writing=writing, collective=collective)
    made.pointer, made.offset = pointer, offset
    return made


def write(file: File, data: bytes | bytearray, offset: int) -> None:
    """This process's bytes, at an offset."""
    memory = memories(len(data))[0]
    memory.put(bytes(data))
    file.module.write(asked(file, memory, EXPLICIT, offset, writing=True))


def stored(path: str) -> bytes:
    """All bytes of a file, as who opens it anew finds them."""
    from ompy.runtime.files import close_file, open_file
    from ompy.runtime.identity import own

    file = open_file(own, path, MODE_RDONLY, {})
    memory = memories(file.module.size())[0]
    moved = file.module.read(asked(file, memory, EXPLICIT, writing=False))
    close_file(file)
    return bytes(memory.whole[:moved])


def without(content: bytes | bytearray, at: list[int]) -> bytearray:
    """A file's bytes but for those at some places, which are 0."""
    rest = bytearray(content)
    for place in at:
        if place < len(rest):
            rest[place] = 0
    return rest


def finish(request: Request) -> int:
    """Wait for one; the bytes that it has moved."""
    from ompy.core.progress import wait_request

    wait_request(request)
    if request.error is not None:
        raise request.error
    return request.nbytes


@check("offer", "bytes", "bounds", "pointer")
def every_layout_is_written_and_read(rank: FileRank) -> None:
    """Through each view, by each pointer, from memory in one run and in pieces."""
    for number, (name, view) in enumerate(views()):
        for turn, nbytes in enumerate(SIZES):
            for pointer in POINTERS:
                with rank.file(alone=True) as file:
                    model = bytearray(rank.random.randbytes(8000))
                    write(file, model, 0)
                    file.module.set_view(view)
                    layout, offset = (number + turn) % 2, rank.random.choice([0, 1, 13])
                    words = f"{nbytes} bytes {NAMES[pointer]} {offset} through the view {name!r}"
                    if pointer != EXPLICIT:
                        file.module.seek(offset, SEEK_SET, pointer == SHARED)
                    data, memory = rank.random.randbytes(nbytes), memories(nbytes)[layout]
                    memory.put(data)
                    before = bytes(memory.whole)
                    moved = file.module.write(asked(file, memory, pointer, offset, writing=True))
                    if moved != nbytes:
                        raise Breach("bytes", f"writing {words}: {moved} were moved")
                    compare(memory.whole, before, "bounds", f"the memory after writing {words}")
                    at = places(view, offset, nbytes)
                    put(model, at, data)
                    found = stored(file.path)
                    compare(
                        without(found, at), without(model, at), "bounds", f"what the view does not have, after writing {words}"
                    )
                    compare(found, model, "bytes", f"the file after writing {words}")
                    read(rank, file, pointer, offset, model, layout, nbytes + 3000, words)
        rank.alive()


def read(rank: FileRank, file: File, pointer: int, offset: int, model: bytearray, layout: int, nbytes: int, words: str) -> None:
    """What is asked for goes beyond the end of the file."""
    shared = pointer == SHARED
    if pointer != EXPLICIT:
        file.module.seek(offset, SEEK_SET, shared)
    memory = memories(nbytes)[layout]
    wanted = bytearray(memory.whole)
    there = bytes(model[at] for at in places(file.view, offset, nbytes) if at < len(model))
    moved = file.module.read(asked(file, memory, pointer, offset, writing=False))
    if moved != len(there):
        raise Breach("bytes", f"reading {nbytes} bytes, {words}: {moved} were moved, {len(there)} are there")
    for place, value in zip(memory.places, there, strict=False):
        wanted[place] = value
    compare(memory.whole, wanted, "bytes", f"the memory after reading {nbytes} bytes, {words}")
    for which in (True, False):
        expected = offset + nbytes if pointer != EXPLICIT and which == shared else 0
        if (found := file.module.tell(which)) != expected:
            whose = "the shared pointer" if which else "the own pointer"
            raise Breach("pointer", f"after reading {nbytes} bytes, {words}, {whose} is {found}, not {expected}")


@check("pointer", "view")
def pointers_count_etypes(rank: FileRank) -> None:
    with rank.file(alone=True) as file:
        module = file.module
        write(file, bytes(103), 0)
        module.set_view(View(3, QUAD, QUAD.create_resized(0, 10)))
        module.write(asked(file, memories(12)[0], INDIVIDUAL, writing=True))
        for offset, whence, wanted in (
            (0, SEEK_CUR, 3),
            (2, SEEK_CUR, 5),
            (-4, SEEK_CUR, 1),
            (7, SEEK_SET, 7),
            (0, SEEK_END, 10),
            (-3, SEEK_END, 7),
        ):
            module.seek(offset, whence, False)
            if (found := module.tell(False)) != wanted:
                raise Breach("pointer", f"a seek by {offset} leads to etype {found}, not {wanted}")
        try:
            module.seek(-8, SEEK_CUR, False)
        except MPIError:
            pass
        else:
            raise Breach("pointer", "a seek before the start of the view is no error")
        if (found := module.tell(False)) != 7:
            raise Breach("pointer", f"a seek that failed has moved the pointer, from 7 to {found}")
        module.seek(5, SEEK_SET, True)
        view = View(0, BYTE, BYTE)
        module.set_view(view)
        if file.view is not view or module.tell(False) or module.tell(True):
            raise Breach("view", "after `set_view` the view is not the new one, or a pointer not at its start")


@check("open", "close", "errors")
def files_are_made_only_where_that_is_asked_for(rank: FileRank) -> None:
    """By all ranks together."""
    from ompy.runtime.files import close_file, open_file

    path, exclusive = rank.path(alone=False), MODE_RDWR | MODE_CREATE | MODE_EXCL
    refused_by_all(rank, path, MODE_RDWR, ERR_NO_SUCH_FILE, "open", "opening what is not there")
    file = open_file(rank.world, path, exclusive, {})
    if rank.rank == 0:
        write(file, bytes(range(10)), 0)
    file.module.sync()
    close_file(file)
    compare(stored(path), bytes(range(10)), "close", f"{path}, which was closed")
    refused_by_all(rank, path, exclusive, ERR_FILE_EXISTS, "open", "making what is there")
    file = open_file(rank.world, path, MODE_RDWR, {})
    if (found := [file.module.tell(shared) for shared in (True, False)]) != [0, 0]:
        raise Breach("open", f"without MODE_APPEND the pointers of a file of 10 bytes are {found}")
    close_file(file)
    file = open_file(rank.world, path, MODE_RDWR | MODE_CREATE | MODE_APPEND | MODE_DELETE_ON_CLOSE, {})
    if (found := [file.module.tell(shared) for shared in (True, False)]) != [10, 10]:
        raise Breach("open", f"with MODE_APPEND the pointers of a file of 10 bytes are {found}")
    close_file(file)
    refused_by_all(rank, path, MODE_RDWR, ERR_NO_SUCH_FILE, "close", "opening what was deleted on close")


def refused_by_all(rank: FileRank, path: str, mode: int, code: int, clause: str, words: str) -> None:
    """Opening fails on rank 0 with the class of the error; others may only know that it could not be done there."""
    from ompy.runtime.files import open_file

    try:
        open_file(rank.world, path, mode, {})
    except MPIError as error:
        if path not in str(error) or (rank.rank == 0 and error.code != code):
            expected = f"class {code} and the words {path!r} expected, not {error.code}: {error}"
            raise Breach("errors", f"{words}: {expected}") from None
        return
    raise Breach(clause, f"{words}: no error")


@check("open", "free", ranks=2)
def nothing_is_held_of_a_file_that_a_rank_can_t_open(rank: FileRank) -> None:
    """The last one may have no more descriptors."""
    from ompy.runtime.files import close_file, open_file

    path, last = rank.path(alone=False), rank.rank == rank.size - 1

    def use() -> None:
        file = None
        rank.exchange(None)
        with suppress(MPIError), no_descriptors() if last else nullcontext():
            file = open_file(rank.world, path, MODE_RDWR | MODE_CREATE | MODE_DELETE_ON_CLOSE, {})
        if len(set(opened := rank.exchange(file is not None))) > 1:
            raise Breach("open", f"rank {rank.size - 1} may have no more descriptors, and the ranks' files are open: {opened}")
        if file is not None:
            close_file(file)

    if found := leaks(use, 3):
        raise Breach("free", f"files that one rank could not open, {found}")


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Meanwhile this process can open nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@check("shared")
def no_two_accesses_get_the_same_etypes(rank: FileRank) -> None:
    """Each writes how many etypes, and whose they are."""
    with rank.file() as file:
        mine = 0
        for _ in range(TURNS):
            count = rank.random.choice([1, 2, 30])
            memory = memories(count)[0]
            memory.put(bytes([1 + rank.rank]) * count)
            file.module.write(asked(file, memory, SHARED, writing=True))
            mine += count
        counts = rank.exchange(mine)
        if (found := file.module.tell(True)) != sum(counts):
            raise Breach("shared", f"after {sum(counts)} etypes the shared pointer is {found}")
        file.module.sync()
        rank.exchange(None)
        content = stored(file.path)
        if [content.count(1 + number) for number in range(rank.size)] != counts:
            raise Breach("shared", "some etypes were written twice, or never")
        rank.exchange(None)


@check("shared", "collective")
def ordered_ones_stand_in_rank_order(rank: FileRank) -> None:
    dice = rank.common_random("ordered")
    with rank.file() as file:
        model = bytearray()
        for turn in range(TURNS):
            counts = [dice.choice([0, 1, 300]) for _ in range(rank.size)]
            memory = memories(counts[rank.rank])[turn % 2]
            memory.put(bytes([(turn * rank.size + rank.rank) % 251]) * counts[rank.rank])
            access = asked(file, memory, SHARED, writing=True, collective=True)
            if turn % 3:
                file.module.write(access)
            else:
                finish(file.module.iwrite(access))
            for number, count in enumerate(counts):
                model += bytes([(turn * rank.size + number) % 251]) * count
        file.module.sync()
        rank.exchange(None)
        compare(stored(file.path), model, "shared", "the file after ordered writes")
        rank.exchange(None)
        file.module.seek(-1, SEEK_END, True)
        if (found := file.module.tell(True)) != len(model) - 1:
            raise Breach("shared", f"a seek to the last of {len(model)} etypes leads to {found}")
        rank.exchange(None)


@check("collective", "bytes")
def pieces_of_all_ranks_are_written_and_read_together(rank: FileRank) -> None:
    dice = rank.common_random("together")
    with rank.file() as file:
        for _ in range(8):
            piece, count = dice.choice([1, 8, 5000]), dice.choice([1, 20])
            seen = [
                View(number * piece, BYTE, BYTE.create_contiguous(piece).create_resized(0, rank.size * piece))
                for number in range(rank.size)
            ]
            datas = [dice.randbytes(piece * count) for _ in seen]
            file.module.set_view(seen[rank.rank])
            memory = memories(piece * count)[dice.randrange(2)]
            memory.put(datas[rank.rank])
            before = bytes(memory.whole)
            file.module.write(asked(file, memory, INDIVIDUAL, writing=True, collective=True))
            memory.put(bytes(piece * count))
            moved = file.module.read(asked(file, memory, EXPLICIT, 0, writing=False, collective=True))
            if moved != piece * count:
                raise Breach("bytes", f"of {piece * count} bytes of this rank's {moved} were read")
            compare(memory.whole, before, "collective", f"{count} pieces of {piece}, read after they were written")
            file.module.sync()
            rank.exchange(None)
            model = bytearray(stored(file.path))
            for view, data in zip(seen, datas, strict=True):
                put(model, places(view, 0, len(data)), data)
            compare(stored(file.path), model, "collective", f"the file after {count} pieces of {piece} of each rank")
            rank.exchange(None)
            rank.alive()


@check("collective", "errors", ranks=2)
def a_rank_that_can_t_begin_takes_its_part(rank: FileRank) -> None:
    """And one that can't finish is not waited for for ever: its bytes are farther than a file can reach."""
    with rank.file() as file:
        # Pieces of all ranks in turn, so that none can do without the others.
        file.module.set_view(View(rank.rank, BYTE, BYTE.create_resized(0, rank.size)))
        for pointer in POINTERS:
            last = rank.rank == rank.size - 1
            memory = memories(0 if last else 100)[0]
            access = asked(file, memory, pointer, 100 * rank.rank, writing=True, collective=True)
            if last:
                access.refuse(MPIError(ERR_OTHER, "the kit's own"))
            try:
                file.module.write(access)
            except MPIError as error:
                if not last and file.path not in str(error):
                    raise Breach("errors", f"{error}: does not name {file.path}") from None
            if last and access.problem is None:
                raise Breach("collective", "the problem of an access is gone")
            rank.exchange(None)
        far = (1 << 62) if last else 0
        try:
            access = asked(file, memories(100)[0], EXPLICIT, far, writing=True, collective=True)
            file.module.write(access)
            problem: BaseException | None = access.problem
        except MPIError as error:
            problem = error
        if problem is None and last:
            raise Breach("errors", "bytes were written farther than a file can reach")
        if problem is not None and file.path not in str(problem):
            raise Breach("errors", f"{problem}: does not name {file.path}")
        rank.exchange(None)


@check("forms", "pointer")
def requests_complete_by_themselves(rank: FileRank) -> None:
    """The pointer is moved at the call, and the view is that of the call."""
    for collective in (False, True):
        with rank.file() as file:
            own = BYTE.create_contiguous(10).create_resized(0, 10 * rank.size)
            file.module.set_view(View(10 * rank.rank, BYTE, own))
            kept = [memories(1000)[number % 2] for number in range(6)]
            datas = [bytes([20 * number + rank.rank]) * 1000 for number in range(6)]
            for memory, data in zip(kept, datas, strict=True):
                memory.put(data)
            for writing in (True, False):
                begin = file.module.iwrite if writing else file.module.iread
                file.module.seek(0, SEEK_SET, False)
                requests = []
                for number, memory in enumerate(kept):
                    requests.append(begin(asked(file, memory, INDIVIDUAL, writing=writing, collective=collective)))
                    if (found := file.module.tell(False)) != 1000 * (number + 1):
                        raise Breach("pointer", f"{number + 1} accesses of 1000 etypes were begun, and the pointer is {found}")
                for request in reversed(requests):
                    if (moved := finish(request)) != 1000:
                        raise Breach("forms", f"a request for 1000 bytes is complete with {moved}")
                for memory, data in zip(kept, datas, strict=True):
                    got = bytes(memory.whole[place] for place in memory.places)
                    compare(got, data, "forms", f"the memory after {'writing' if writing else 'reading'}")
                    # What is read must come from the file.
                    memory.put(bytes(1000))
            rank.exchange(None)


@check("view", "errors", ranks=2)
def etypes_of_different_sizes_are_refused(rank: FileRank) -> None:
    with rank.file() as file:
        before = file.view
        etype = QUAD if rank.rank else BYTE
        try:
            file.module.set_view(View(0, etype, etype))
        except MPIError as error:
            found: int | None = error.code
        else:
            found = None
        codes = rank.exchange(found)
        if ERR_NOT_SAME not in codes or None in codes:
            raise Breach("view", f"etypes of different sizes on the ranks are errors of the classes {codes}")
        if file.view is not before:
            raise Breach("view", "a view that was refused is the file's")


@check("size")
def every_rank_sees_the_size(rank: FileRank) -> None:
    with rank.file() as file:
        module = file.module
        for call, size, wanted in (
            ("set_size", 1000, 1000),
            ("preallocate", 300, 1000),
            ("preallocate", 5000, 5000),
            ("set_size", 7, 7),
            ("set_size", 200, 200),
        ):
            getattr(module, call)(size)
            if (found := module.size()) != wanted:
                raise Breach("size", f"after {call}({size}): {found} bytes, not {wanted}")
            if rank.rank == 0:
                write(file, b"x" * wanted, 0)
            rank.exchange(None)
            if call == "set_size" and size == 7:
                module.set_size(200)
                compare(stored(file.path), b"x" * 7 + bytes(193), "size", "what was cut off, and added again")
                rank.exchange(None)
                module.set_size(7)
        module.sync()
        rank.exchange(None)


@check("atomic")
def atomic_accesses_are_seen_whole(rank: FileRank) -> None:
    """Each rank writes its own byte everywhere, and reads what some rank has written."""
    with rank.file() as file:
        try:
            file.module.set_atomicity(True)
        except MPIError as error:
            if error.code != ERR_UNSUPPORTED_OPERATION and rank.rank == 0:
                raise Breach("atomic", f"an atomic mode that can't be is an error of another class: {error}") from None
            return
        if not file.atomic:
            raise Breach("atomic", "after `set_atomicity` the file is not atomic")
        file.module.set_view(View(0, BYTE, BYTE.create_resized(0, 3)))
        write(file, bytes(3000), 0)
        rank.exchange(None)
        memory = memories(3000)[0]
        for turn in range(TURNS):
            write(file, bytes([1 + (turn * rank.size + rank.rank) % 250]) * 3000, 0)
            file.module.read(asked(file, memory, EXPLICIT, 0, writing=False))
            if len(values := set(memory.whole)) > 1:
                raise Breach("atomic", f"the bytes of {len(values)} accesses were seen in one read")
        rank.exchange(None)
        file.module.set_atomicity(False)
        if file.atomic:
            raise Breach("atomic", "the file stays atomic")


@check("free")
def nothing_is_held_of_a_closed_file(rank: FileRank) -> None:
    def use() -> None:
        with rank.file() as file:
            for pointer in (SHARED, INDIVIDUAL):
                finish(file.module.iwrite(asked(file, memories(1000)[1], pointer, writing=True, collective=True)))

    if found := leaks(use, 10):
        raise Breach("free", f"files that were written, {found}")
