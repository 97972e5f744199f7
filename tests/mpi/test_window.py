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


HINTS = {
    "no_locks": ("yes", "true"),
    "accumulate_ordering": ("waw, rar", "rar,waw"),
    "accumulate_ops": ("same_op", "same_op"),
    "mpi_accumulate_granularity": ("4096", "4096"),
    "same_size": ("true", "true"),
    "same_disp_unit": ("1", "true"),
    "alloc_shared_noncontig": ("true", "true"),
    "mpi_minimum_memory_alignment": ("4096", "4096"),
    "mpi_assert_memory_alloc_kinds": ("cuda,system,mpi:alloc_mem", "system,mpi:alloc_mem"),
}
DEFAULTS = {
    "no_locks": "false",
    "accumulate_ordering": "rar,raw,war,waw",
    "accumulate_ops": "same_op_no_op",
    "mpi_accumulate_granularity": "0",
    "same_size": "false",
    "same_disp_unit": "false",
    "alloc_shared_noncontig": "false",
    "mpi_minimum_memory_alignment": "16",
}


@pytest.mark.ompy(2)
def test_hints_in_force_are_told(comm):
    win = MPI.Win.Allocate(8, info=MPI.Info.Create({"ours": "not", "accumulate_ordering": "all", "no_locks": "?"}), comm=comm)
    told = dict(win.Get_info().items())
    assert {name: told[name] for name in DEFAULTS} == DEFAULTS
    assert "ours" not in told
    assert "mpi_assert_memory_alloc_kinds" not in told
    win.Set_info(MPI.Info.Create({"no_locks": "true", "accumulate_ordering": "none", "accumulate_ops": "same_op"}))
    told = win.Get_info()
    assert (told["no_locks"], told["accumulate_ordering"], told["accumulate_ops"]) == ("false", "none", "same_op")
    assert told["ompy_source_of_accumulate_ops"] == "Set_info"
    win.Free()
    win = MPI.Win.Allocate(8, info=MPI.Info.Create({name: given for name, (given, _) in HINTS.items()}), comm=comm)
    told = dict(win.Get_info().items())
    assert {name: told[name] for name in HINTS} == {name: shown for name, (_, shown) in HINTS.items()}
    win.Free()


def check_alignment(comm):
    for alignment in (64, 512, 4096):
        info = MPI.Info.Create({"mpi_minimum_memory_alignment": str(alignment)})
        for size in (8, 3000, 100000):
            win = MPI.Win.Allocate(size, info=info, comm=comm)
            assert win.Get_attr(MPI.WIN_BASE) % alignment == 0
            memory = MPI.Alloc_mem(size, info)
            assert memory.address % alignment == 0
            MPI.Free_mem(memory)
            win.Free()


@pytest.mark.ompy(2)
def test_allocated_memory_is_aligned_as_was_asked_for(comm):
    check_alignment(comm)


@pytest.mark.ompy(2, mca={"btl": "self,tcp"})
def test_allocated_memory_is_aligned_where_there_is_no_shared_heap_too(comm):
    check_alignment(comm)


@pytest.mark.ompy(3)
def test_ranks_that_give_different_hints_take_those_of_rank_0(comm):
    given = ({"no_locks": "true"}, {}, {"no_locks": "false", "accumulate_ops": "same_op"})
    win = MPI.Win.Allocate(8, info=MPI.Info.Create(given[comm.rank]), comm=comm)
    told = win.Get_info()
    assert (told["no_locks"], told["accumulate_ops"]) == ("true", "same_op_no_op")
    win.Free()


@pytest.mark.ompy(2)
@pytest.mark.parametrize(("name", "error"), [("same_size", MPI.ERR_SIZE), ("same_disp_unit", MPI.ERR_DISP)])
def test_who_promises_that_all_give_the_same_and_does_not_is_told(comm, name, error):
    info = MPI.Info.Create({name: "true"})
    for make in (MPI.Win.Allocate, MPI.Win.Allocate_shared):
        with pytest.raises(MPI.Exception, match=f"rank 1 gave 2 and rank 0 1, although the info key {name}") as caught:
            make(1 + comm.rank, 1 + comm.rank, info, comm)
        assert caught.value.Get_error_class() == error


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
    win.Post(win.group)
    with pytest.raises(MPI.Exception, match="Post"):
        win.Free()
    assert win.Get_attr(keyval) == "value"
    assert not deleted
    win.Start(win.group)
    with pytest.raises(MPI.Exception, match="epoch"):
        win.Free()
    assert not deleted
    win.Complete()
    win.Wait()
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
