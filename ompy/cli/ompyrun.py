from __future__ import annotations

import sys


def main() -> int:
    from ompy.runtime.job import Job, Program
    from ompy.runtime.launcher import Launcher

    args = sys.argv[1:]
    count = 1
    while args and args[0].startswith("-"):
        if args[0] in ("-n", "-np", "-c"):
            count = int(args[1])
            args = args[2:]
        else:
            raise SystemExit(f"unknown option {args[0]}")
    return Launcher(Job([Program(args, count)])).run()
