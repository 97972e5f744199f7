"""What goes wrong on the chip."""

from __future__ import annotations

from ompy.core.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError


class Deadlock(MPIError):
    """No tile can ever move again; the text names the tiles that wait and the buffers that are full."""

    def __init__(self, diagnosis: str) -> None:
        super().__init__(ERR_OTHER, diagnosis)


class TileDied(MPIError):
    """Another tile's process has ended without leaving the chip."""

    def __init__(self, diagnosis: str) -> None:
        super().__init__(ERR_PROC_FAILED, diagnosis)
