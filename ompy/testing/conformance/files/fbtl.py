"""One process's bytes to and from a file."""

from __future__ import annotations

import itertools
import os
import threading

from ompy.core.errors import MPIError
from ompy.core.file import MODE_RDONLY, MODE_WRONLY, File
from ompy.core.memory import address_of
from ompy.core.view import View
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.files.accesses import (
    BYTE,
    access,
    compare,
    content_of,
    memories,
    places,
    put,
    views,
)
from ompy.testing.conformance.files.rank import FileRank
from ompy.testing.conformance.held import leaks

check = Collection()

SIZES = (0, 1, 5, 300, 2000)
BACKGROUND = 8000
TURNS = 40
# What may be written in the gaps of a view.
HINTS = ("automatic", "enable", "disable")


@check("offer", "bytes", "bounds")
def every_layout_is_written_and_read(rank: FileRank) -> None:
    for name, view in views():
        for nbytes, number in itertools.product(SIZES, range(2)):
            with rank.file(alone=True) as file:
                module, model = rank.module(file), bytearray(rank.random.randbytes(BACKGROUND))
                module.store(address_of(model), len(model), 0)
                memory, position = memories(nbytes)[number], rank.random.choice([0, 1, 13])
                words = f"{nbytes} bytes from byte {position} of the view {name!r}, memory in {memory.name}"
                data = rank.random.randbytes(nbytes)
                memory.put(data)
                before = bytes(memory.whole)
                moved = module.pwritev(access(view, position, memory, writing=True))
                if moved != nbytes:
                    raise Breach("bytes", f"writing {words}: {moved} were moved")
                compare(memory.whole, before, "bounds", f"the memory after writing {words}")
                at = places(view, position, nbytes)
                put(model, at, data)
                compare(content_of(file), model, "bytes", f"the file after writing {words}")
                read(rank, file, view, position, model, number, nbytes, words)
        rank.alive()


def read(rank: FileRank, file: File, view: View, position: int, model: bytearray, number: int, nbytes: int, words: str) -> None:
    """Also what is asked for beyond the end of the file."""
    for asked in (nbytes, nbytes + len(model)):
        memory = memories(asked)[number]
        wanted = bytearray(memory.whole)
        there = bytes(model[at] for at in places(view, position, asked) if at < len(model))
        moved = rank.module(file).preadv(access(view, position, memory, writing=False))
        if moved != len(there):
            raise Breach("bytes", f"reading {asked} bytes, {words}: {moved} were moved, {len(there)} are there")
        for place, value in zip(memory.places, there, strict=False):
            wanted[place] = value
        compare(memory.whole, wanted, "bytes", f"the memory after reading {asked} bytes, {words}")


@check("bytes", "bounds")
def a_file_that_can_only_be_written_is_written(rank: FileRank) -> None:
    """Through each view, whether its gaps may be written or not: nobody can look what is there."""
    from ompy.runtime.files import close_file, open_file
    from ompy.runtime.identity import own

    for (name, view), hint in itertools.product(views(), HINTS):
        with rank.file(alone=True) as file:
            model, data = bytearray(rank.random.randbytes(BACKGROUND)), rank.random.randbytes(300)
            rank.module(file).store(address_of(model), len(model), 0)
            memory = memories(len(data))[0]
            memory.put(data)
            writer = open_file(own, file.path, MODE_WRONLY, {"romio_ds_write": hint})
            rank.module(writer).pwritev(access(view, 0, memory, writing=True))
            close_file(writer)
            put(model, places(view, 0, len(data)), data)
            compare(content_of(file), model, "bytes", f"{len(data)} bytes through the view {name!r}, gaps {hint}")


@check("bytes")
def a_view_may_show_bytes_twice(rank: FileRank) -> None:
    """Of a file that is only read: tiles lie in one another, so that offsets go back from one to the next."""
    from ompy.runtime.files import close_file, open_file
    from ompy.runtime.identity import own

    view = View(2, BYTE, BYTE.create_indexed([3, 3], [0, 100]).create_resized(0, 2))
    with rank.file(alone=True) as file:
        model = bytearray(rank.random.randbytes(BACKGROUND))
        rank.module(file).store(address_of(model), len(model), 0)
        reader = open_file(own, file.path, MODE_RDONLY, {})
        for nbytes, layout in itertools.product(SIZES, range(2)):
            memory = memories(nbytes)[layout]
            moved = rank.module(reader).preadv(access(view, 0, memory, writing=False))
            got = bytes(memory.whole[place] for place in memory.places)
            if moved != nbytes:
                raise Breach("bytes", f"reading {nbytes} bytes of tiles that overlap: {moved} were moved")
            compare(got, bytes(model[at] for at in places(view, 0, nbytes)), "bytes", "what was read of tiles that overlap")
        close_file(reader)


@check("bounds", "bytes", ranks=2)
def ranks_write_between_one_another_s_pieces(rank: FileRank) -> None:
    """At the same time, whether gaps may be written back, must not be, or may be under a lock."""
    view = View(rank.rank, BYTE, BYTE.create_resized(0, rank.size))
    for hint in HINTS:
        with rank.file(romio_ds_write=hint) as file:
            memory = memories(1000)[0]
            for turn in range(TURNS):
                memory.put(bytes([1 + (turn + rank.rank) % 250]) * 1000)
                rank.exchange(None)
                rank.module(file).pwritev(access(view, 0, memory, writing=True))
                rank.exchange(None)
                wanted = bytes(1 + (turn + number) % 250 for number in range(rank.size)) * 1000
                compare(content_of(file), wanted, "bounds", f"every {rank.size}th byte of each rank's, gaps {hint}")


@check("offer")
def a_file_may_have_any_descriptor(rank: FileRank) -> None:
    """Also 0, where the standard input is closed."""
    kept = os.dup(0)
    os.close(0)
    try:
        with rank.file(alone=True) as file:
            data = bytearray(b"zero")
            rank.module(file).store(address_of(data), len(data), 0)
            compare(content_of(file), data, "bytes", "a file without a standard input")
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@check("bytes")
def bytes_as_they_are_end_where_the_file_does(rank: FileRank) -> None:
    with rank.file(alone=True) as file:
        module, data = rank.module(file), bytearray(range(200))
        module.store(address_of(data), len(data), 1000)
        got = bytearray(500)
        for offset, wanted in ((1000, 200), (1100, 100), (900, 300), (1200, 0), (5000, 0)):
            if (found := module.fetch(address_of(got), len(got), offset)) != wanted:
                raise Breach("bytes", f"500 bytes fetched from {offset} of a file of 1200: {found}, not {wanted}")
        compare(got[:0] + content_of(file), bytes(1000) + data, "bytes", "a file with a hole")


@check("any thread")
def threads_write_and_read_at_the_same_time(rank: FileRank) -> None:
    problems: list[str] = []
    with rank.file(alone=True) as file:
        module = rank.module(file)

        def work(number: int) -> None:
            view = View(number, BYTE, BYTE.create_resized(0, 4))
            try:
                for turn in range(30):
                    (memory, _), data = memories(500), bytes([(number + turn) % 251]) * 500
                    memory.put(data)
                    module.pwritev(access(view, 0, memory, writing=True))
                    memory.put(bytes(500))
                    module.preadv(access(view, 0, memory, writing=False))
                    if memory.whole != data:
                        problems.append(f"thread {number} found what another one wrote")
            except Exception as error:
                problems.append(f"thread {number}: {error}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if problems:
        raise Breach("any thread", problems[0])


@check("forms")
def requests_complete_by_themselves(rank: FileRank) -> None:
    from ompy.core.progress import wait_request

    with rank.file(alone=True) as file:
        module, view = rank.module(file), View(0, BYTE, BYTE)
        kept = [memories(1000)[0] for _ in range(5)]
        for number, memory in enumerate(kept):
            memory.put(bytes([number + 1]) * 1000)
        for form, writing in (("ipwritev", True), ("ipreadv", False)):
            requests = [
                getattr(module, form)(access(view, 1000 * number, memory, writing=writing))
                for number, memory in enumerate(kept)
            ]
            for request in reversed(requests):
                wait_request(request)
                if request.error is not None:
                    raise request.error
            for number, memory in enumerate(kept):
                compare(memory.whole, bytes([number + 1]) * 1000, "forms", f"{form}, number {number}")


@check("locks", needs="locks", ranks=2)
def a_lock_keeps_other_processes_out(rank: FileRank) -> None:
    turns = 100
    with rank.file() as file:
        module, number = rank.module(file), bytearray(8)
        if not module.check_atomicity():
            raise Breach("locks", "the component declares locks, and check_atomicity says that it has none")
        for _ in range(turns):
            module.lock(0, 8, True)
            module.fetch(address_of(number), 8, 0)
            number[:] = (int.from_bytes(number, "little") + 1).to_bytes(8, "little")
            module.store(address_of(number), 8, 0)
            module.unlock(0, 8)
        rank.exchange(None)
        module.fetch(address_of(number), 8, 0)
        if (found := int.from_bytes(number, "little")) != turns * rank.size:
            raise Breach("locks", f"{turns * rank.size} additions under a lock made {found}")


@check("errors")
def errors_name_the_file(rank: FileRank) -> None:
    from ompy.runtime.files import close_file, open_file
    from ompy.runtime.identity import own

    with rank.file(alone=True) as file:
        only_read = open_file(own, file.path, MODE_RDONLY, {})
        (memory, _) = memories(10)
        try:
            rank.module(only_read).pwritev(access(View(0, BYTE, BYTE), 0, memory, writing=True))
        except MPIError as error:
            if file.path not in str(error):
                raise Breach("errors", f"{error}: does not name {file.path}") from None
        else:
            raise Breach("errors", "a file opened with MODE_RDONLY was written")
        close_file(only_read)


@check("free")
def modules_give_back_what_they_held(rank: FileRank) -> None:
    """Of files that were written through views with gaps, from memory in pieces."""

    def use() -> None:
        with rank.file(alone=True) as file:
            module, memory = rank.module(file), memories(2000)[1]
            for _, view in views():
                module.pwritev(access(view, 0, memory, writing=True))
                module.preadv(access(view, 0, memory, writing=False))

    if found := leaks(use, 4):
        raise Breach("free", f"files that were written and read, {found}")
