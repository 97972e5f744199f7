"""Messages that nobody waits for, while their receiver computes: how long they take, and what they need in memory.

ompyrun -n 2 python docs/examples/flood.py
ompyrun -n 2 --mca pml cm --mca mtl_portals_heap 1048576 python docs/examples/flood.py
"""

from __future__ import annotations

import resource
import sys
import time

from ompy import MPI

MESSAGES, SIZE, SECONDS = 100_000, 1024, 2.0


def main() -> None:
    comm = MPI.COMM_WORLD
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES
    memory = bytearray(SIZE)
    comm.Barrier()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    if comm.rank == 0:
        for number in range(messages):
            memory[:4] = number.to_bytes(4, "little")
            comm.Send(memory, dest=1)
        comm.Recv(memory, source=1)
        print(f"{messages} messages of {SIZE} bytes sent and received after {time.perf_counter() - begin:.2f} s")
    elif comm.rank == 1:
        while time.perf_counter() - begin < SECONDS:
            comm.Iprobe(source=0, tag=1)  # computes, and looks now and then
        for number in range(messages):
            comm.Recv(memory, source=0)
            assert int.from_bytes(memory[:4], "little") == number, f"message {number} is missing"
        comm.Send(memory, dest=0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"none lost; the receiver's memory grew by {grown / 1024:.1f} MiB")


if __name__ == "__main__":
    main()
