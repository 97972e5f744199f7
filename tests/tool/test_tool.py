"""The tool information interface: what can be set at run time takes effect, and what is counted is what happened."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SM = {"btl": "self,sm"}


def run(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.ompy(2, mca=SM | {"btl_sm_eager_limit": "8k"})
def test_every_parameter_is_a_control_variable(comm):
    from ompy import tool

    variables = {variable.name: variable for variable in tool.control_variables()}
    assert len(variables) > 80
    limit = variables["btl_sm_eager_limit"]
    assert (limit.read(), limit.source, limit.unit) == (8192, "--mca btl_sm_eager_limit", "bytes")
    assert (limit.type, limit.verbosity, limit.scope) == (int, "tuner basic", "readonly")
    assert "btl_zmq_security" in variables  # of a component that does not serve


@pytest.mark.ompy(2, mca=SM)
def test_what_is_written_at_run_time_is_in_force(comm):
    import pytest

    from ompy import MPI, tool

    comm.Set_errhandler(MPI.ERRORS_RETURN)
    with pytest.raises(MPI.Exception):
        comm.Send(bytearray(1), 99)
    check = tool.control_variable("mpi_param_check")
    assert (check.read(), check.scope) == (1, "all")
    check.write(0)
    assert (check.read(), check.source) == (0, "run time")
    comm.Send(bytearray(1), MPI.PROC_NULL)
    check.write("1")
    with pytest.raises(MPI.Exception):
        comm.Send(bytearray(1), 99)
    # In force for communicators that are made from now on.
    from ompy.mpi.comm import core_of
    from ompy.runtime.explain import explain_collective

    tool.control_variable("coll_bcast_algorithm").write("logarithmic")
    other = comm.Dup()
    for each, component in ((comm, "sm"), (other, "basic")):
        serving = next(told for told in explain_collective("bcast", 8, core_of(each)) if told.chosen)
        assert serving.component == component
    other.Free()


@pytest.mark.ompy(1)
def test_what_is_read_at_the_start_only_and_what_is_no_value_are_refused(comm):
    import pytest

    from ompy import tool
    from ompy.core.errors import ERR_READ_ONLY, MPIError
    from ompy.mca.errors import ParameterError

    before = tool.control_variable("btl_sm_eager_limit").read()
    with pytest.raises(MPIError, match="read at the start only") as caught:
        tool.control_variable("btl_sm_eager_limit").write(1)
    assert caught.value.code == ERR_READ_ONLY
    assert tool.control_variable("btl_sm_eager_limit").read() == before
    with pytest.raises(ParameterError, match="is not"):
        tool.control_variable("mpi_spin_us").write("soon")
    with pytest.raises(ParameterError, match="mpi_spin_us"):
        tool.control_variable("mpi_spin_su")


@pytest.mark.ompy(2, mca=SM)
def test_counters_count_between_start_and_stop(comm):
    from ompy import tool

    peer = 1 - comm.rank

    def exchange(times, size):
        for _ in range(times):
            comm.Sendrecv(bytearray(size), peer, 1, bytearray(size), peer, 1)

    with tool.Session() as session, tool.Session() as other:
        messages, nbytes = session.handle("btl_sm_messages_sent"), session.handle("btl_sm_bytes_sent")
        always = other.handle("btl_sm_messages_sent")
        always.start()
        exchange(3, 8)
        assert messages.read() == 0
        session.start()
        exchange(10, 100)
        session.stop()
        exchange(5, 100)
        assert messages.read() == 10
        assert 1000 <= nbytes.read() < 1000 + 10 * 64
        assert always.read() == 18
        assert messages.read_and_reset() == 10
        messages.start()
        exchange(2, 8)
        assert messages.read() == 2
        assert always.read() == 20


@pytest.mark.ompy(2)
def test_how_far_a_long_transfer_to_a_file_is_can_be_read_meanwhile(comm, tmp_path):
    from ompy import MPI, tool

    path = os.path.join(comm.bcast(str(tmp_path)), "data")
    file = MPI.File.Open(comm, path, MPI.MODE_RDWR | MPI.MODE_CREATE | MPI.MODE_DELETE_ON_CLOSE)
    with tool.Session() as session:
        written, calls = session.handle("fbtl_posix_bytes_written"), session.handle("fbtl_posix_calls")
        session.start()
        data = bytes(40 << 20)
        request, seen = file.Iwrite_at(comm.rank * len(data), data), set()
        while not request.Test():
            seen.add(written.read())
        assert written.read() == len(data)
        assert calls.read() == 3
        assert seen <= {0, 16 << 20, 32 << 20, len(data)}
    file.Close()


@pytest.mark.ompy(2, mca=SM)
def test_queue_lengths_are_those_of_a_communicator(comm):
    from ompy import MPI, tool

    other = comm.Dup()
    with tool.Session() as session:
        lengths = {
            (name, where.name): session.handle(f"pml_ob1_{name}", where)
            for name in ("posted_receives", "unexpected_messages")
            for where in (comm, other)
        }
        kept = session.handle("pml_ob1_messages_kept")
        kept.start()
        comm.Barrier()
        if comm.rank == 0:
            for _ in range(3):
                other.Send(bytearray(8), 1, 5)
            comm.Send(bytearray(1), 1, 6)
        else:
            pending = comm.Irecv(bytearray(1), MPI.ANY_SOURCE, 7)
            comm.Recv(bytearray(1), 0, 6)
            now = {key: handle.read() for key, handle in lengths.items()}
            assert now["unexpected_messages", other.name] == 3
            assert now["unexpected_messages", comm.name] == 0
            assert now["posted_receives", comm.name] == 1
            assert kept.read() >= 3
            for _ in range(3):
                other.Recv(bytearray(8), 0, 5)
            assert lengths["unexpected_messages", other.name].read() == 0
            pending.Cancel()
            pending.Wait()
        comm.Barrier()
    other.Free()


@pytest.mark.ompy(2, mca=SM)
def test_handles_are_used_as_they_were_made(comm):
    import pytest

    from ompy import tool
    from ompy.core.errors import MPIError

    session = tool.Session()
    with pytest.raises(MPIError, match="btl_sm_messages_sent"):
        session.handle("btl_sm_messages_snet")
    with pytest.raises(MPIError, match="needs a communicator"):
        session.handle("pml_ob1_posted_receives")
    with pytest.raises(MPIError, match="is about no communicator"):
        session.handle("btl_sm_messages_sent", comm)
    level = session.handle("btl_sm_rings_in")
    with pytest.raises(MPIError, match="can't be reset"):
        level.reset()
    freed = session.handle("btl_sm_messages_sent")
    freed.free()
    with pytest.raises(MPIError, match="was freed"):
        freed.read()
    session.free()
    with pytest.raises(MPIError, match="its session was"):
        level.read()


@pytest.mark.ompy(1)
def test_categories_hold_each_variable_once(comm):
    from ompy import tool

    found = tool.categories()
    assert "btl_self" in found["btl"].categories
    assert {variable.name for variable in found["btl_self"].performance_variables} >= {"btl_self_messages", "btl_self_bytes"}
    assert "btl_base_verbose" in [variable.name for variable in found["btl"].control_variables]
    controls = [variable.name for category in found.values() for variable in category.control_variables]
    counted = [variable.name for category in found.values() for variable in category.performance_variables]
    assert sorted(controls) == [variable.name for variable in tool.control_variables()]
    assert sorted(counted) == [variable.name for variable in tool.performance_variables()]


def test_there_are_control_variables_but_nothing_is_counted_before_the_start() -> None:
    program = "from ompy import tool; print(len(tool.control_variables()) > 80, tool.performance_variables())"
    assert run("-c", program) == "True []\n"


def test_ompy_info_lists_what_is_counted() -> None:
    command = ("-c", "from ompy.cli.ompy_info import main; main()", "--pvars")
    assert "btl_sm_bytes_sent" in run(*command)
    assert "mca:pvar:btl_sm_rings_in:class:level" in run(*command, "--parsable").splitlines()


@pytest.mark.ompy(2, mca=SM)
def test_counters_that_are_described_are_those_that_are_counted(comm):
    from ompy.mca.loading import loaded_components
    from ompy.mca.selection import chosen_modules

    for framework, modules in chosen_modules.items():
        for module in modules:
            if hasattr(module, "statistics"):
                described = {counter.name for counter in loaded_components[framework, module.name].component.counters}
                assert described <= set(module.statistics()), (framework, module.name)
