"""rMPI on the simulated Raw chip: packets on the wire, tiles that send at once, and packets that nobody should have sent."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy
import pytest

RAW = {"pml": "rpi", "rpi_base_verbose": -1}
CROSSING = """
from ompy import MPI
import numpy, sys
from ompy.mca.selection import chosen_modules
comm, words = MPI.COMM_WORLD, int(sys.argv[1])
tile = chosen_modules["rpi"][0].tile
tile.advance(comm.allreduce(tile.clock, op=MPI.MAX) + 20000 - tile.clock)
came = numpy.zeros(words, "i")
comm.Send(numpy.full(words, comm.rank, "i"), 1 - comm.rank)
comm.Recv(came, 1 - comm.rank)
assert (came == 1 - comm.rank).all()
print("came out", tile.watchdog_drains)
"""
HEADER_WORDS = 5


def cross(words: int, **mca: object) -> subprocess.CompletedProcess[str]:
    """Two neighbours send each other a message of version I that crosses the wire as so many words."""
    parameters = {**RAW, "rpi": "raw_v1", **mca}
    options = [word for name, value in parameters.items() for word in ("--mca", name, str(value))]
    command = [sys.executable, "-m", "ompy.cli.ompyrun", "-n", "2", *options, sys.executable, "-c", CROSSING]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMPY_")}
    return subprocess.run([*command, str(words - HEADER_WORDS)], capture_output=True, text=True, timeout=120, env=environment)


def test_version_1_crosses_with_as_many_words_as_the_buffers_hold() -> None:
    assert cross(8).stdout.count("came out 0") == 2


def test_version_1_deadlocks_with_one_word_more_and_says_where() -> None:
    result = cross(9)
    assert result.returncode
    assert "deadlock on the Raw chip" in result.stderr
    for tile, side in ((0, "east"), (1, "west")):
        assert f"tile {tile} at ({tile}, 0) is stalled writing" in result.stderr
        assert f"output ($CGNO) 4/4, input from {side} 4/4" in result.stderr


def test_the_watchdog_brings_version_1_out() -> None:
    result = cross(200, machine_raw_watchdog=1000)
    assert result.returncode == 0, result.stderr
    assert "came out 0" not in result.stdout


def every_pair_exchanges(comm):
    for words in (1, 4, 23, 24, 27, 28, 31, 100):
        for step in range(1, comm.size):
            peer, came = comm.rank ^ step, numpy.zeros(words, "i")
            comm.Send(numpy.full(words, comm.rank, "i"), peer)
            comm.Recv(came, peer)
            assert (came == peer).all()


@pytest.mark.ompy(4, mca=RAW | {"rpi": "raw_v2"})
def test_version_2_never_deadlocks(comm):
    every_pair_exchanges(comm)


@pytest.mark.ompy(4, mca=RAW | {"rpi": "raw_v3"})
def test_version_3_never_deadlocks(comm):
    every_pair_exchanges(comm)


@pytest.mark.skipif(not os.environ.get("OMPY_TEST_ALL_PAIRS"), reason="OMPY_TEST_ALL_PAIRS=1 runs it: minutes")
@pytest.mark.ompy(16, mca=RAW | {"rpi": "raw_v3"}, timeout=900)
def test_all_pairs_of_the_chip_exchange_long_messages(comm):
    for words in (1, 100, 10_000):
        for step in range(1, comm.size):
            peer, came = comm.rank ^ step, numpy.zeros(words, "i")
            comm.Send(numpy.full(words, comm.rank, "i"), peer)
            comm.Recv(came, peer)
            assert (came == peer).all()


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v3"})
def test_a_packet_of_nobody_is_an_error_that_says_so(comm):
    from ompy import MPI
    from ompy.mca.selection import chosen_modules

    if comm.rank == 0:
        chosen_modules["rpi"][0].tile.send(1, [99, 1, 2, 3])
    else:
        with pytest.raises(MPI.Exception, match="begins with rank 99, but there are 2"):
            comm.Recv(numpy.zeros(1), 0)


@pytest.mark.ompy(2, mca=RAW | {"rpi": "raw_v3"})
def test_the_handler_goes_on_in_the_middle_of_a_packet(comm):
    from ompy.mca.selection import chosen_modules

    [rpi] = chosen_modules["rpi"]
    if comm.rank == 0:
        # Version III's packets by hand, in messages of the network that end where no packet does.
        words = [0, 12, 7, rpi_scope(comm), 11, 22, 33]
        for begin, end in ((0, 1), (1, 3), (3, 5), (5, 7)):
            rpi.tile.send(1, words[begin:end])
            rpi.tile.advance(1000)
    else:
        got = numpy.zeros(3, "i")
        states = set()
        request = comm.Irecv(got, 0, 7)
        while not request.Test():
            states.add(rpi.handler_state)
        assert got.tolist() == [11, 22, 33]
        assert {"IN_ENVELOPE", "IN_PAYLOAD"} <= states


def rpi_scope(comm):
    """The communicator's number on the wire."""
    from ompy.runtime.identity import world_communicator

    return world_communicator().pml.number


def test_the_hash_is_that_of_figure_3_9() -> None:
    from ompy_rpi_raw.hash_table import hash_of

    def java(source: int, tag: int) -> int:
        mask = (1 << 32) - 1
        i = (source << 21 | tag) & mask
        i = (i + ~(i << 9)) & mask
        i ^= (i >> 14 | i << 18) & mask
        i = (i + (i << 4)) & mask
        return i ^ (i >> 10 | i << 22) & mask

    keys = [(source, tag) for source in range(16) for tag in (0, 1, 42, 314, 2**20)]
    assert [hash_of(*key) for key in keys] == [java(*key) for key in keys]
    assert len({hash_of(*key) for key in keys}) == len(keys)
