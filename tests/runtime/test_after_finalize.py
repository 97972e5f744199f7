"""Calls after MPI was finalised, and those of other threads that are under way: erroneous, and errors."""

from __future__ import annotations

import pytest
from launching import launch, mpi

PROGRAM = """
import numpy as np
buffers = [np.zeros(10) for _ in range(5)]
requests = {
    "Send_init": comm.Send_init(buffers[0], 1 - rank, 1),
    "Recv_init": comm.Recv_init(buffers[1], 1 - rank, 1),
    "Psend_init": comm.Psend_init(buffers[2], 2, 1 - rank, 2),
    "Irecv": comm.Irecv(buffers[3], 1 - rank, 3),
}
started = comm.Psend_init(buffers[4], 2, 1 - rank, 4)
started.Start()
MPI.Finalize()
calls = {f"Start of {name}": request.Start for name, request in requests.items() if name != "Irecv"}
calls |= {f"Cancel of {name}": request.Cancel for name, request in requests.items()}
calls |= {"Pready": lambda: started.Pready(0)}
for name, call in calls.items():
    try:
        call()
        print("nothing wrong with", name)
    except MPI.Exception as error:
        if "MPI was finalised" not in str(error): print(name, error)
requests["Recv_init"].Free()
print("over")
sys.stdout.flush()
os._exit(0)
"""


# A thread goes on while the main one ends: between calls, in the middle of one, in a wait.
CALLS = {
    "Sendrecv": "c.Sendrecv(np.ones(100), 1 - rank, recvbuf=np.zeros(100))",
    "Allreduce": "c.Allreduce(np.ones(1000), np.zeros(1000))",
    "objects": "c.allgather([rank] * 9)",
    "Iallreduce": "c.Iallreduce(np.ones(9), np.zeros(9)).Wait()",
    "Dup": "c.Dup().Free()",
    "Fence": "win.Fence()",
    "a wait": "c.Recv(np.zeros(1), 1 - rank, 9)",
}
THREAD = """
import threading, time
import numpy as np
c = comm.Dup()
win = MPI.Win.Allocate(800, comm=c)
begun = threading.Event()
def go_on():
    try:
        while True:
            begun.set()
            {call}
    except MPI.Exception as error:
        assert "MPI was finalised" in str(error), error
        told.append(error)
told = []
thread = threading.Thread(target=go_on, daemon=True)
thread.start()
begun.wait()
time.sleep(rank * 0.01)  # not a synchronisation: where in its calls the thread is, is to be any place
"""


@pytest.mark.parametrize("btl", ["sm", "tcp", "zmq"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_thread_in_the_middle_of_a_call_does_not_break_the_end_of_the_program(call: str, btl: str) -> None:
    job = launch("-n", "2", "--timeout", "40", "--mca", "btl", f"self,{btl}", *mpi(THREAD.format(call=call)))
    assert job.process.returncode == 0, job.stderr


def test_a_thread_in_a_wait_is_told_that_mpi_was_finalised() -> None:
    end = "MPI.Finalize()\nthread.join()\nprint(len(told))\n"
    job = launch("-n", "2", "--timeout", "40", *mpi(THREAD.format(call=CALLS["a wait"]) + end))
    assert (job.process.returncode, job.stdout) == (0, "1\n1\n"), job.stderr


@pytest.mark.parametrize("over", [(), ("--mca", "pml", "cm", "--mca", "mtl", "portals"), ("--mca", "btl", "self,tcp")])
def test_a_call_on_a_request_after_finalize_is_an_error(over: tuple[str, ...]) -> None:
    job = launch("-n", "2", "--timeout", "40", *over, *mpi(PROGRAM))
    assert (job.process.returncode, job.stdout) == (0, "over\nover\n"), job.stderr
