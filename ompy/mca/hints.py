"""What a program may ask of how something is served, by info keys, and what is in force.

Each kind of thing has a table of its own; here stands that of files (MPI-4.1, 14.2.8), whose names are ROMIO's where it has
one for the thing.  A hint that is not listed, or whose value can't be read, is passed over, as MPI has it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ompy.core.communicator import Communicator

KIB = 1024
MIB = 1024 * KIB


def whole(low: int, high: int = 1 << 30) -> Callable[[str], int]:
    """Reads an integer from `low` to `high`."""

    def read(text: str) -> int:
        number = int(text)
        if not low <= number <= high:
            raise ValueError(text)
        return number

    return read


def choice(text: str) -> str:
    if text.lower() not in ("enable", "disable", "automatic"):
        raise ValueError(text)
    return text.lower()


def mode(text: str) -> int:
    return int(text, 8) & 0o777


class Hint:
    """One of them: how its value is read, what it is where nobody says, and what it does, for people."""

    __slots__ = ("default", "help", "read", "show")

    def __init__(
        self, default: int | str, read: Callable[[str], int | str], help: str, show: Callable[[int | str], str] = str
    ) -> None:
        self.default = default
        self.read = read
        self.help = help
        self.show = show


HINTS: dict[str, Hint] = {
    "cb_buffer_size": Hint(4 * MIB, whole(4096), "bytes of the file that a collective access gathers at a time"),
    "cb_nodes": Hint(0, whole(0), "ranks that move what is gathered; 0: as many as the machine is worth"),
    "romio_cb_read": Hint("automatic", choice, "whether collective reads are gathered"),
    "romio_cb_write": Hint("automatic", choice, "whether collective writes are gathered"),
    "romio_ds_read": Hint("automatic", choice, "whether gaps between the pieces of a view are read too, and dropped"),
    "romio_ds_write": Hint(
        "automatic",
        choice,
        "whether gaps are read and written back: automatic does so where nobody else has the file open, enable takes range "
        "locks around every write",
    ),
    "ind_rd_buffer_size": Hint(4 * MIB, whole(4096), "bytes of the file that such a read takes at a time"),
    "ind_wr_buffer_size": Hint(1 * MIB, whole(4096), "bytes of the file that such a write takes at a time"),
    "file_perm": Hint(
        0o666, mode, "permissions of a file that is made, octal; the umask takes away", lambda value: f"{value:o}"
    ),
}
# Of a key that says where a hint comes from.
SOURCE = "ompy_source_of_"


class Hints:
    """Those in force on one thing.

    Parameters:
        table: those that there are; a file's unless told.
    """

    def __init__(self, table: Mapping[str, Hint] = HINTS) -> None:
        self.table = table
        self.values: dict[str, int | str] = {name: hint.default for name, hint in table.items()}
        self.sources = dict.fromkeys(table, "default")

    def known(self, info: Mapping[str, str]) -> str:
        """What an info object says that concerns us, in one string that is the same for the same hints."""
        return "\0".join(word for name in sorted(self.table) if name in info for word in (name, info[name]))

    def agree(self, communicator: Communicator, info: Mapping[str, str], source: str) -> None:
        """Take over what an info object says; collective: where ranks say different things, all take rank 0's.

        Parameters:
            source: for people: "info of Open".
        """
        from ompy.mca.agreement import common

        mine = self.known(info)
        told = common(communicator, mine)
        words = told.split("\0")
        self.update(dict(zip(words[::2], words[1::2], strict=False)), source if told == mine else f"{source} of rank 0")

    def update(self, info: Mapping[str, str], source: str) -> None:
        """Take over what an info object says.  See `agree`."""
        for name, text in info.items():
            if name in self.table:
                try:
                    value = self.table[name].read(text)
                except ValueError:
                    continue
                if value != self.values[name] or self.sources[name] == "default":
                    self.values[name], self.sources[name] = value, source

    def number(self, name: str) -> int:
        """The value of a hint that is a number."""
        value = self.values[name]
        assert isinstance(value, int)
        return value

    def word(self, name: str) -> str:
        """The value of one that is not."""
        value = self.values[name]
        assert isinstance(value, str)
        return value

    def info(self) -> dict[str, str]:
        """As an info object has them: each hint, and where it comes from."""
        shown = {name: self.table[name].show(value) for name, value in self.values.items()}
        return {**shown, **{SOURCE + name: source for name, source in self.sources.items()}}
