"""Windows: how they are made, what they say of themselves, and their end."""

import pickle

import pytest

from ompy import MPI


def test_the_null_window():
    assert not MPI.WIN_NULL
    assert MPI.Win() == MPI.WIN_NULL
    assert MPI.WIN_NULL.Get_name() == "MPI_WIN_NULL"
    assert pickle.loads(pickle.dumps(MPI.WIN_NULL)) is MPI.WIN_NULL
    for call in (MPI.WIN_NULL.Free, MPI.WIN_NULL.Fence, MPI.WIN_NULL.Get_group, MPI.WIN_NULL.tomemory):
        with pytest.raises(MPI.Exception) as caught:
            call()
        assert caught.value.Get_error_class() == MPI.ERR_WIN


@pytest.mark.ompy(1, 3)
def test_a_window_on_memory_of_the_programs(comm):
    memory = bytearray(10 + comm.rank)
    win = MPI.Win.Create(memory, 2, comm=comm)
    assert win.attrs == (MPI.Get_address(memory), 10 + comm.rank, 2)
    assert (win.flavor, win.model) == (MPI.WIN_FLAVOR_CREATE, MPI.WIN_UNIFIED)
    assert (win.group_size, win.group_rank) == (comm.size, comm.rank)
    assert MPI.Group.Compare(win.group, comm.group) == MPI.IDENT
    win.tomemory()[3] = 7
    assert memory[3] == 7
    assert memoryview(win).nbytes == len(memory)
    with pytest.raises(BufferError):
        memory.append(1)
    win.Free()
    assert win == MPI.WIN_NULL
    memory.append(1)


@pytest.mark.ompy(1, 2)
def test_an_allocated_window_is_zero_and_outlives_nothing_that_looks_at_it(comm):
    win = MPI.Win.Allocate(64, comm=comm)
    memory = win.tomemory()
    assert bytes(memory) == bytes(64)
    win.Free()
    memory[:] = b"x" * 64
    assert bytes(memory) == b"x" * 64


@pytest.mark.ompy(1, 3)
@pytest.mark.parametrize("apart", [False, True])
def test_shared_memory_is_seen_by_all(comm, apart):
    info = MPI.Info.Create()
    info["alloc_shared_noncontig"] = str(apart).lower()
    win = MPI.Win.Allocate_shared(8 * (comm.rank + 1), 8, info, comm)
    own, _ = win.Shared_query(comm.rank)
    own[:] = bytes([comm.rank + 1]) * len(own)
    win.Sync()
    comm.Barrier()
    starts = []
    for rank in range(comm.size):
        memory, unit = win.Shared_query(rank)
        assert unit == 8
        assert bytes(memory) == bytes([rank + 1]) * 8 * (rank + 1)
        starts.append(MPI.Get_address(memory))
    lowest, _ = win.Shared_query(MPI.PROC_NULL)
    assert MPI.Get_address(lowest) == starts[0]
    if not apart:
        assert starts == [starts[0] + 4 * rank * (rank + 1) for rank in range(comm.size)]
    comm.Barrier()
    win.Free()
    info.Free()


@pytest.mark.ompy(2)
def test_memory_that_is_not_shared_is_not_seen(comm):
    win = MPI.Win.Allocate(8, comm=comm)
    there, _ = win.Shared_query(1 - comm.rank)
    here, _ = win.Shared_query(comm.rank)
    assert (len(there), len(here)) == (0, 8)
    win.Free()


def test_attributes_name_and_hints():
    deleted = []
    keyval = MPI.Win.Create_keyval(delete_fn=lambda win, keyval, value: deleted.append((bool(win), value)))
    info = MPI.Info.Create({"no_locks": "true"})
    win = MPI.Win.Create(None, info=info)
    assert win.info["no_locks"] == "true"
    win.name = "mine"
    assert MPI.Win(win).name == "mine"
    win.Set_attr(keyval, "value")
    assert win.Get_attr(keyval) == "value"
    with pytest.raises(MPI.Exception) as caught:
        win.Get_attr(MPI.KEYVAL_INVALID)
    assert caught.value.Get_error_class() == MPI.ERR_KEYVAL
    with pytest.raises(ValueError, match="serialize"):
        pickle.dumps(win)
    assert MPI.Win.fromhandle(win.handle) == win
    win.Free()
    assert deleted == [(True, "value")]
    MPI.Win.Free_keyval(keyval)


def test_a_handler_hears_of_errors_and_a_second_handle_of_the_end():
    heard = []
    handler = MPI.Win.Create_errhandler(lambda win, code: heard.append((win.name, MPI.Get_error_class(code))))
    win = MPI.Win.Create(bytearray(4))
    win.name = "watched"
    win.Set_errhandler(handler)
    with pytest.raises(MPI.Exception):
        win.Put(b"x", 0)
    assert heard == [("watched", MPI.ERR_RMA_SYNC)]
    other = MPI.Win(win)
    win.Free()
    handler.Free()
    with pytest.raises(MPI.Exception, match="freed"):
        other.Fence()


@pytest.mark.ompy(1, 2)
def test_numbers_that_make_no_sense_are_errors_on_every_rank(comm):
    unit = 0 if comm.rank == comm.size - 1 else 1
    with pytest.raises(MPI.Exception, match=f"rank {comm.size - 1}") as caught:
        MPI.Win.Allocate(8, unit, comm=comm)
    assert caught.value.Get_error_class() == MPI.ERR_DISP
    with pytest.raises(MPI.Exception) as caught:
        MPI.Win.Allocate(8, comm=MPI.COMM_NULL)
    assert caught.value.Get_error_class() == MPI.ERR_COMM


@pytest.mark.ompy(2)
def test_shared_memory_is_given_back(comm):
    def mappings():
        with open("/proc/self/maps") as maps:
            return sum("ompy-window" in line for line in maps)

    for _ in range(5):
        win = MPI.Win.Allocate_shared(100, comm=comm)
        assert mappings() == 1
        win.Free()
        assert mappings() == 0
    # A view holds on to what it shows.
    win = MPI.Win.Allocate_shared(1, comm=comm)
    memory = win.tomemory()
    win.Free()
    memory[0] = 7
    assert memory[0] == 7
    del memory
    assert mappings() == 0
