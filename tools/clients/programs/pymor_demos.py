"""Tests of pyMOR by pytest on rank 0, while the other ranks do what they are asked: `pymor_demos.py [arguments of pytest]`."""

import sys

import pytest
from pymor.tools import mpi

status = 0
mpi.launch_event_loop()
if mpi.rank0:
    status = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
    mpi.quit()
sys.exit(status)
