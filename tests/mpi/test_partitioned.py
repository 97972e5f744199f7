"""Partitioned communication (MPI-4.1, chapter 4): what arrives when, however the two sides cut."""

import random
import threading

import numpy as np
import pytest

from ompy import MPI

SIZE = 60 * 4096  # bytes: 15 parts at most, with the default mpi_partition_size


def payload(seed, size=SIZE):
    return random.Random(seed).randbytes(size)


def triples(size):
    """Elements of 12 bytes, of which each has a gap: parts end within them."""
    pair = MPI.INT.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Create_resized(0, 24).Commit()
    return pair, size // 12


@pytest.mark.ompy(2)
def test_a_partition_arrives_before_others_are_ready(comm):
    each = SIZE // 6
    if comm.rank == 0:
        data = bytearray(payload(0))
        request = comm.Psend_init(data, 6, 1)
        for turn in range(3):
            request.Start()
            for first in (3, 0):
                request.Pready(first)
                comm.recv(source=1)
            request.Pready_list([5, 1, 4, 2])
            request.Wait()
            data[:] = payload(turn + 1)
    else:
        data = bytearray(SIZE)
        request = comm.Precv_init(data, 6, 0, 0)
        for turn in range(3):
            data[:] = bytes(SIZE)
            request.Start()
            for first in (3, 0):
                while not request.Parrived(first):
                    pass
                assert data[first * each : (first + 1) * each] == payload(turn)[first * each : (first + 1) * each]
                assert not request.Parrived(5)
                comm.send(None, 0)
            status = MPI.Status()
            request.Wait(status)
            assert (status.source, status.tag, status.Get_count(MPI.BYTE)) == (0, 0, SIZE)
            assert data == payload(turn)
    request.Free()


@pytest.mark.parametrize("sent", [1, 2, 3, 5, 12, 240])
@pytest.mark.parametrize("received", [1, 2, 3, 4, 10, 120, 4096])
@pytest.mark.parametrize("seed", range(2))
def test_sender_and_receiver_may_cut_the_same_bytes_differently(sent, received, seed):
    rng = random.Random(f"{sent} {received} {seed}")
    comm = MPI.COMM_SELF
    source, target = bytearray(SIZE), bytearray(SIZE)
    send = comm.Psend_init([source, SIZE // sent, MPI.BYTE], sent, 0, 3)
    receive = comm.Precv_init([target, SIZE // 4 // received, MPI.INT], received, 0, 3)
    each, part = SIZE // sent, SIZE // received
    for turn in range(2):
        source[:], target[:] = payload(turn), bytes(SIZE)
        for request in rng.sample([send, receive], 2):
            request.Start()
        ready = [False] * sent
        for partition in rng.sample(range(sent), sent):
            send.Pready(partition)
            ready[partition] = True
            for it in rng.sample(range(received), min(received, 5)):
                needed = range(it * part // each, ((it + 1) * part - 1) // each + 1)
                if receive.Parrived(it):
                    assert all(ready[number] for number in needed)
                    assert target[it * part : (it + 1) * part] == source[it * part : (it + 1) * part]
        MPI.Request.Waitall([send, receive])
        assert target == source
    send.Free()
    receive.Free()


@pytest.mark.parametrize(("sent", "received"), [(1, 3), (4, 6), (10, 12)])
def test_parts_may_end_within_an_element_of_the_sender(sent, received):
    comm = MPI.COMM_SELF
    pair, count = triples(SIZE)
    memory = np.frombuffer(payload(1, 24 * count), "u1").reshape(count, 24)
    target = bytearray(SIZE)
    send = comm.Psend_init([memory, count // sent, pair], sent, 0, 3)
    receive = comm.Precv_init([target, SIZE // received, MPI.BYTE], received, 0, 3)
    MPI.Prequest.Startall([send, receive])
    send.Pready_list(range(sent))
    MPI.Request.Waitall([send, receive])
    packed = np.concatenate([memory[:, :4], memory[:, 8:16]], axis=1)
    assert target == packed.tobytes()
    send.Free()
    receive.Free()
    pair.Free()


@pytest.mark.parametrize("length", [0, 4096, SIZE - 4096, SIZE, SIZE + 4096, 3 * SIZE])
def test_a_message_shorter_than_its_receive_is_whole_and_a_longer_one_an_error(length):
    comm = MPI.COMM_SELF
    source, target, status = payload(2, length), bytearray(SIZE), MPI.Status()
    send, receive = comm.Psend_init(source, 4, 0), comm.Precv_init(target, 6, 0, 0)
    for _ in range(2):
        MPI.Prequest.Startall([send, receive])
        send.Pready_range(0, 3)
        send.Wait()
        if length <= SIZE:
            receive.Wait(status)
            assert status.Get_count(MPI.BYTE) == length
            assert target[:length] == source
            continue
        # The messages of the parts have tags that the program has never heard of.
        with pytest.raises(MPI.Exception, match="bytes from rank 0, but the receive buffer holds") as caught:
            receive.Wait()
        assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
    send.Free()
    receive.Free()


@pytest.mark.ompy(2)
def test_threads_may_be_ready_with_a_partition_each(comm):
    """Before the receiver's cut is known and after."""
    data = np.zeros((16, SIZE // 16 // 8))
    request = comm.Psend_init(data, 16, 1) if comm.rank == 0 else comm.Precv_init(data, 5 * 16, 0, 0)
    for turn in range(20):
        request.Start()
        if comm.rank == 0:

            def fill(number, turn=turn):
                data[number] = 100 * turn + number
                request.Pready(number)

            threads = [threading.Thread(target=fill, args=[number]) for number in range(16)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        request.Wait()
        assert (data == 100 * turn + np.arange(16)[:, None]).all()
    request.Free()


@pytest.mark.ompy(1)
def test_the_status_of_a_receive_from_nobody_says_so(comm):
    from ompy import MPI

    request = comm.Precv_init(bytearray(8), 2, MPI.PROC_NULL, 5)
    status = MPI.Status()
    for _ in range(2):
        request.Start()
        request.Wait(status)
        assert (status.source, status.tag, status.Get_count()) == (MPI.PROC_NULL, MPI.ANY_TAG, 0)
    request.Free()
