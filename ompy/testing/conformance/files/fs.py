"""Files as a whole: made, found, resized and deleted."""

from __future__ import annotations

from collections.abc import Callable

from ompy.core.errors import ERR_FILE_EXISTS, ERR_NO_SUCH_FILE, MPIError
from ompy.core.file import MODE_CREATE, MODE_EXCL, MODE_RDWR
from ompy.core.memory import address_of
from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.files.rank import FileRank

check = Collection()


def refused(call: Callable[[], object], code: int, path: str, words: str) -> None:
    """Raises Breach unless a call raises the error of a class, which names the file."""
    try:
        call()
    except MPIError as error:
        if error.code != code or path not in str(error):
            raise Breach(
                "errors", f"{words}: class {code} and the words {path!r} expected, not {error.code}: {error}"
            ) from None
        return
    raise Breach("errors", f"{words}: no error")


@check("offer", "open", "errors")
def files_are_made_only_where_that_is_asked_for(rank: FileRank) -> None:
    from ompy.runtime.files import close_file, delete_file, open_file
    from ompy.runtime.identity import own

    path = rank.path(alone=True)
    refused(lambda: open_file(own, path, MODE_RDWR, {}), ERR_NO_SUCH_FILE, path, "opening what is not there")
    close_file(open_file(own, path, MODE_RDWR | MODE_CREATE | MODE_EXCL, {}))
    exclusive = MODE_RDWR | MODE_CREATE | MODE_EXCL
    refused(lambda: open_file(own, path, exclusive, {}), ERR_FILE_EXISTS, path, "making what is there, with `exclusive`")
    close_file(open_file(own, path, MODE_RDWR | MODE_CREATE, {}))
    delete_file(path, {})
    refused(lambda: delete_file(path, {}), ERR_NO_SUCH_FILE, path, "deleting what is not there")


@check("close")
def a_file_keeps_its_bytes_when_it_is_closed(rank: FileRank) -> None:
    from ompy.runtime.files import close_file, delete_file, open_file
    from ompy.runtime.identity import own

    path, data = rank.path(alone=True), bytearray(b"something")
    for _ in range(20):
        file = open_file(own, path, MODE_RDWR | MODE_CREATE, {})
        file.parts["fbtl"].store(address_of(data), len(data), 5)
        file.module.sync()
        close_file(file)
        file = open_file(own, path, MODE_RDWR, {})
        got = bytearray(len(data))
        found = file.parts["fbtl"].fetch(address_of(got), len(got), 5)
        close_file(file)
        if found != len(data) or got != data:
            raise Breach("close", f"{path}: {bytes(got)!r} was found in it, not {bytes(data)!r}")
    delete_file(path, {})


@check("size", "alone")
def every_rank_sees_the_size_that_one_has_made(rank: FileRank) -> None:
    with rank.file() as file:
        module = rank.module(file)
        for turn in range(10):
            maker = turn % rank.size
            for call, size, wanted in (
                ("resize", 1000, 1000),
                ("preallocate", 300, 1000),
                ("preallocate", 5000, 5000),
                ("resize", 7, 7),
                ("resize", 0, 0),
            ):
                if rank.rank == maker:
                    getattr(module, call)(file, size)
                rank.exchange(None)
                if (found := module.size(file)) != wanted:
                    raise Breach("size", f"after {call}({size}) on rank {maker}: {found} bytes, not {wanted}")
                rank.exchange(None)
            rank.alive()


@check("size")
def what_is_added_is_zero(rank: FileRank) -> None:
    with rank.file(alone=True) as file:
        module, data = rank.module(file), bytearray(b"x") * 100
        file.parts["fbtl"].store(address_of(data), len(data), 0)
        module.resize(file, 10)
        module.resize(file, 200)
        got = bytearray(b"?" * 200)
        file.parts["fbtl"].fetch(address_of(got), len(got), 0)
        if got != b"x" * 10 + bytes(190):
            raise Breach("size", "what was cut off came back, or what was added is not zero")
