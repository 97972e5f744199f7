"""`python tests/hosts failures|start|many|links|suite`: what takes long to show of many hosts, with figures; as root.

failures --rounds 20                   each way in which a host, a proxy, a rank, a launcher goes: how soon is all over?
start --rounds 10                      4 hosts of 8 ranks by ssh, in turns with Hydra; --apart where others are busy
many --hosts 64 --ranks 16             very many ranks: how long, and how much does each hold?
links --rounds 5 --messages 1000000    two networks: how much more do both carry than one, and what does the loss of one cost?
                                       --over zmq: of zmq under dr
suite --under Hydra p2p_buf            mpi4py's suite, or some modules, on 2 and 5 ranks of three hosts, under each launcher;
                                       under srun, of two nodes of a Slurm on this machine
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from failures import fail_in_every_way
from links import compare_links
from machines import reason_against
from many import start_many
from start import apart, compare_starts
from suite import run_suite


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("failures", "start", "many", "links", "suite"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=16, help="of each host")
    parser.add_argument("--fan-out", type=int, default=32)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of both ranks, while links are lost")
    parser.add_argument("--over", default="tcp", choices=("tcp", "zmq"), help="the transport whose links are compared")
    parser.add_argument("modules", nargs="*", help="of mpi4py's suite; all")
    parser.add_argument("--under", default="", choices=("", "ompyrun", "Hydra", "PRRTE", "srun"), help="this launcher alone")
    parser.add_argument("--apart", action="store_true", help="take the processors from whatever else runs")
    given = parser.parse_intermixed_args()
    if reason := reason_against():
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="ompy-hosts-") as folder:
        if given.what == "failures":
            return fail_in_every_way(Path(folder), given.rounds)
        if given.what == "start":
            with apart() if given.apart else nullcontext():
                return compare_starts(Path(folder), given.rounds)
        if given.what == "links":
            return compare_links(Path(folder), given.over, given.rounds, given.messages)
        if given.what == "suite":
            return run_suite(Path(folder), given.under, given.modules)
        return start_many(Path(folder), given.hosts, given.ranks, given.fan_out)


if __name__ == "__main__":
    sys.exit(main())
