"""Numbered messages from every rank to every other, over a transport that does what it likes to them.

    ompyrun -n 3 --mca pml dr --mca btl chaos,self ... python million.py COUNT

COUNT messages in all or a few more, of several lengths and tags, some longer than a packet.  Each receiver knows what must
come next: one that is missing, repeated, changed or out of order is found at once.  Prints what was received.
"""

from __future__ import annotations

import sys

from ompy import MPI

LENGTHS = (8, 8, 8, 40, 8, 200, 8, 8, 1000, 8, 8, 3000)
LONG = 200_000  # more than a packet, for a thousandth of the messages
BATCH = 50  # under way at a time
TAGS = 3


def filled(number: int, source: int, buffer: memoryview) -> memoryview:
    """The message of that number: its length and every byte follow from it."""
    length = LONG if number % 1000 == 999 else LENGTHS[number % len(LENGTHS)]
    message = buffer[:length]
    message[:8] = (number << 8 | source).to_bytes(8, "big")
    if length > 8:
        message[8:] = bytes([number & 0xFF]) * (length - 8)
    return message


def main(total: int) -> None:
    comm = MPI.COMM_WORLD
    pairs = comm.size * (comm.size - 1)
    count = -(-total // pairs)
    peers = [peer for peer in range(comm.size) if peer != comm.rank]
    out = [memoryview(bytearray(LONG)) for _ in range(BATCH)]
    into = {peer: [memoryview(bytearray(LONG)) for _ in range(BATCH)] for peer in peers}
    expected = memoryview(bytearray(LONG))
    received = 0
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        receives = [
            (peer, number, comm.Irecv(into[peer][number - first], peer, number % TAGS)) for number in numbers for peer in peers
        ]
        sends = [
            comm.Isend(filled(number, comm.rank, out[number - first]), peer, number % TAGS)
            for number in numbers
            for peer in peers
        ]
        for peer, number, request in receives:
            status = MPI.Status()
            request.Wait(status)
            right = filled(number, peer, expected)
            assert status.Get_count(MPI.BYTE) == len(right), f"message {number} from rank {peer}: wrong length"
            assert into[peer][number - first][: len(right)] == right, f"message {number} from rank {peer}: wrong data"
            received += 1
        MPI.Request.Waitall(sends)
    assert not comm.Iprobe(), "more came than was sent"
    total_received = comm.allreduce(received)
    if comm.rank == 0:
        print(f"{total_received} messages, none lost, repeated, changed or out of order")


if __name__ == "__main__":
    main(int(sys.argv[1]))
