"""Files: accesses by which ranks write or read one file, and the exchange that people write by hand in their place.

`file_KIND_DIRECTION:BYTES` is one call.  Each rank's data are PER_RANK bytes in pieces of so many, dealt out like cards:

    file      0 1 2 3 0 1 2 3 ...          the digit: whose piece it is

By hand every rank is given a part of the file: `Alltoall` brings it together, NumPy puts it in order, and one call writes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

PER_RANK = 1 << 20


class Interleaved:
    """A file of which each rank sees every so manyth piece.

    Parameters:
        comm: the ranks.
        path: the file.
        rows, piece: how many pieces of so many bytes each rank has.
        filetype: what a rank sees of a row.
    """

    def __init__(self, comm: MPI.Intracomm, path: str, rows: int, piece: int, etype: MPI.Datatype) -> None:
        self.comm, self.rows, self.piece = comm, rows, piece
        size, rank = comm.Get_size(), comm.Get_rank()
        count = piece // etype.Get_size()
        filetype = etype.Create_subarray([rows, size * count], [rows, count], [0, rank * count]).Commit()
        self.file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
        self.file.Set_view(0, etype, filetype)
        self.data = np.random.default_rng(rank).integers(0, 255, rows * piece, np.uint8)
        self.buffer = [self.data, rows * count, etype]
        self.descriptor = os.open(path, os.O_RDWR)
        self.part = np.empty_like(self.data)
        self.write()

    def write(self) -> None:
        self.file.Write_at_all(0, self.buffer)

    def read(self) -> None:
        self.file.Read_at_all(0, self.buffer)

    @property
    def begins(self) -> int:
        """Where this rank's part of the file begins, by hand."""
        return int(self.comm.Get_rank()) * len(self.part)

    def write_by_hand(self) -> None:
        self.comm.Alltoall(self.data, self.part)
        # From (rank, row, byte) to the file's (row, rank, byte).
        together = self.part.reshape(self.comm.Get_size(), -1, self.piece).transpose(1, 0, 2)
        os.pwrite(self.descriptor, np.ascontiguousarray(together).data, self.begins)
        self.comm.Barrier()

    def read_by_hand(self) -> None:
        os.preadv(self.descriptor, [self.part.data], self.begins)
        apart = self.part.reshape(-1, self.comm.Get_size(), self.piece).transpose(1, 0, 2)
        self.comm.Alltoall(np.ascontiguousarray(apart), self.data)

    def close(self) -> None:
        os.close(self.descriptor)
        self.file.Close()


class Plain:
    """A file as it is."""

    def __init__(self, comm: MPI.Intracomm, path: str, nbytes: int) -> None:
        self.file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE)
        self.data = np.ones(nbytes, np.uint8)
        self.begins = comm.Get_rank() * nbytes
        self.write_all()

    def write_at(self) -> None:
        self.file.Write_at(self.begins, self.data)

    def read_at(self) -> None:
        self.file.Read_at(self.begins, self.data)

    def write_all(self) -> None:
        self.file.Write_at_all(self.begins, self.data)

    def read_all(self) -> None:
        self.file.Read_at_all(self.begins, self.data)

    def write_shared(self) -> None:
        self.file.Write_shared(self.data)

    def write_ordered(self) -> None:
        self.file.Write_ordered(self.data)

    def close(self) -> None:
        self.file.Close()


def with_file(
    comm: MPI.Intracomm, name: str, nbytes: int, sample: Callable[[Callable[[], object]], list[float]]
) -> dict[str, list[float]]:
    """The samples of one row, taken by `sample`; those of the exchange by hand go by "by hand"."""
    folder = comm.bcast(tempfile.mkdtemp() if comm.Get_rank() == 0 else None)
    path = os.path.join(folder, "data")
    kind, _, way = name.removeprefix("file_").partition("_")
    try:
        if kind == "plain":
            plain = Plain(comm, path, nbytes)
            found = {"": sample(getattr(plain, way))}
            plain.close()
            return found
        if kind == "columns":
            # Of a square matrix of doubles: `nbytes` is the length of a row.
            shape, etype = (nbytes // 8, nbytes // comm.Get_size()), MPI.DOUBLE
        else:
            shape, etype = (PER_RANK // nbytes, nbytes), MPI.BYTE
        interleaved = Interleaved(comm, path, *shape, etype)
        found = {"": sample(getattr(interleaved, way)), "by hand": sample(getattr(interleaved, f"{way}_by_hand"))}
        interleaved.close()
        return found
    finally:
        comm.Barrier()
        if comm.Get_rank() == 0:
            shutil.rmtree(folder)
