from collections.abc import Callable

MAX_DATAREP_STRING: int

class Datarep:
    name: str

def Register_datarep(
    datarep: str,
    read_fn: Callable[..., None] | None,
    write_fn: Callable[..., None] | None,
    extent_fn: Callable[..., int],
) -> None: ...
