from __future__ import annotations

import sys


def main() -> int:
    from ompy.runtime.job import Job, Program
    from ompy.runtime.launcher import Launcher

    args = sys.argv[1:]
    count = 1
    opts = {}
    env={}
    while args and args[0].startswith("-"):
        if args[0] in ("-n", "-np", "-c"):
            count = int(args[1])
            args = args[2:]
        elif args[0] in ("--tag-output", "--report-state-on-timeout"):
            opts[{"--tag-output": "tag_output", "--report-state-on-timeout": "report_state"}[args[0]]] = True
            args = args[1:]
        elif args[0] == "--timeout":
            opts["timeout"] = float(args[1])
            args = args[2:]
        elif args[0] == "--mca":
            env["OMPY_MCA_"+args[1]] = args[2]
            args = args[3:]
        else:
            raise SystemExit(f"unknown option {args[0]}")
    job = Job([Program(args, count, env)])
    for k, v in opts.items():
        setattr(job, k, v)
    return Launcher(job).run()


if __name__ == "__main__":
    sys.exit(main())
