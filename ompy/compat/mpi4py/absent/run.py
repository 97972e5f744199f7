"""`python -m mpi4py PROGRAM` where mpi4py is not installed: runs the program; one rank's failure ends the job.

python -m mpi4py FILE [arguments]
python -m mpi4py -m MODULE [arguments]
python -m mpi4py -c COMMAND [arguments]
"""

from __future__ import annotations

import runpy
import sys


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    # ompy's initialisation is what makes an uncaught exception end the other ranks too.
    from ompy import MPI  # noqa: F401

    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c" and len(arguments) > 1:
        sys.argv[:] = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
