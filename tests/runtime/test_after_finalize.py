"""Calls on requests after MPI was finalised: erroneous, and an error."""

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


@pytest.mark.parametrize("over", [(), ("--mca", "pml", "cm", "--mca", "mtl", "portals"), ("--mca", "btl", "self,tcp")])
def test_a_call_on_a_request_after_finalize_is_an_error(over: tuple[str, ...]) -> None:
    job = launch("-n", "2", "--timeout", "40", *over, *mpi(PROGRAM))
    assert (job.process.returncode, job.stdout) == (0, "over\nover\n"), job.stderr
