"""Random programs on files against a bytearray; `file_programs.py` has them, and runs as many as one likes."""

from __future__ import annotations

import pytest
from file_programs import run


@pytest.mark.ompy(1, 2, 3)
def test_files_hold_what_the_model_holds(comm, tmp_path):
    folder = comm.bcast(str(tmp_path))
    run(comm, 100 * comm.size, 40, folder)


@pytest.mark.ompy(2, 3, 4, mca={"fcoll_two_phase_exchange": "messages"})
def test_files_hold_what_the_model_holds_when_pieces_go_by_messages(comm, tmp_path):
    folder = comm.bcast(str(tmp_path))
    run(comm, 100 * comm.size, 40, folder)


@pytest.mark.ompy(1, 2, 3, mca={"fbtl_posix_map_from": "1", "fbtl_posix_map_after": "0"})
def test_files_hold_what_the_model_holds_when_accesses_are_copies(comm, tmp_path):
    folder = comm.bcast(str(tmp_path))
    run(comm, 1000 + 100 * comm.size, 40, folder)


@pytest.mark.ompy(2, 3, mca={"fbtl_posix_map_from": "16", "fbtl_posix_map_after": "1"})
def test_files_hold_what_the_model_holds_when_parts_are_mapped_in_turns(comm, tmp_path):
    folder = comm.bcast(str(tmp_path))
    run(comm, 2000 + 100 * comm.size, 40, folder)
