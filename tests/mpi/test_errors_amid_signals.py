"""An error reaches its error handler and the program, whatever signal handlers raise at that moment."""

import signal
import time

import pytest
from late_signals import Late, raise_late

from ompy import MPI

WAITS = {
    "Wait": lambda request: request.Wait(),
    "Waitall": lambda request: MPI.Request.Waitall([request]),
    "Waitany": lambda request: MPI.Request.Waitany([request]),
    "Waitsome": lambda request: MPI.Request.Waitsome([request]),
    "wait": lambda request: request.wait(),
}
ROUNDS = 100


@pytest.mark.ompy(2)
@pytest.mark.parametrize("name", WAITS)
def test_who_is_interrupted_when_an_error_comes_hears_of_it_when_it_waits_again(comm, name):
    """A message that is too long comes at about the time of a timer."""
    handled, raised = [], 0
    handler = MPI.Comm.Create_errhandler(lambda comm, code: handled.append(code))
    twin = comm.Dup()
    twin.Set_errhandler(handler)
    signal.signal(signal.SIGALRM, raise_late)
    for number in range(ROUNDS):
        if comm.rank == 1:
            comm.recv(source=0)
            until = time.perf_counter() + 0.002 + number % 40 * 1e-5
            while time.perf_counter() < until:
                pass
            twin.Send(bytes(100), 0, 1)
            continue
        request = twin.Irecv(bytearray(50), 1, 1)
        comm.send(None, 1)
        found = False
        signal.setitimer(signal.ITIMER_REAL, 0.0022)
        while not found:
            try:
                try:
                    if not request:
                        break
                    WAITS[name](request)
                except MPI.Exception:
                    found = True
            except Late as late:
                found = found or holds_error(late)
        # The interpreter looks at signals at calls and in loops: that the timer has come is seen in this one.
        try:
            while signal.getitimer(signal.ITIMER_REAL)[0]:
                pass
            for _ in range(2):
                pass
        except Late as late:
            found = found or holds_error(late)
        raised += found
    if comm.rank == 0:
        assert (len(handled), raised) == (ROUNDS, ROUNDS)
    twin.Free()
    handler.Free()


def holds_error(late):
    """Whether it came while an error was dealt with."""
    return late is not None and (isinstance(late, MPI.Exception) or holds_error(late.__context__))


def test_a_signal_that_comes_within_an_error_handler_is_handled_when_that_is_over():
    comm = MPI.COMM_SELF.Dup()
    order = []

    def handle(comm, code):
        signal.raise_signal(signal.SIGALRM)
        order.append("error handler")

    def late(*_):
        order.append("signal handler")
        raise Late

    handler = MPI.Comm.Create_errhandler(handle)
    comm.Set_errhandler(handler)
    before = signal.signal(signal.SIGALRM, late)
    error = None
    try:
        try:
            comm.Send(b"", 5)
        except MPI.Exception as problem:
            error = problem
        for _ in range(2):
            pass
    except Late as problem:
        error = error or problem.__context__
    finally:
        signal.signal(signal.SIGALRM, before)
    assert order == ["error handler", "signal handler"]
    assert isinstance(error, MPI.Exception)
    comm.Free()
    handler.Free()


def test_a_wait_within_an_error_handler_is_interrupted():
    """Nothing comes: without the signal it would last for ever."""
    comm = MPI.COMM_SELF.Dup()
    ended = []

    def handle(comm, code):
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            MPI.COMM_SELF.Recv(bytearray(1), 0, 77)
        except Late:
            ended.append(True)

    handler = MPI.Comm.Create_errhandler(handle)
    comm.Set_errhandler(handler)
    before = signal.signal(signal.SIGALRM, raise_late)
    try:
        with pytest.raises(MPI.Exception):
            comm.Send(b"", 5)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended == [True]
    comm.Free()
    handler.Free()
