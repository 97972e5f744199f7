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
