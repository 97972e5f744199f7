"""`python -m mpi4py PROGRAM` where mpi4py is not installed: runs the program; one rank's failure ends the job.

python -m mpi4py FILE [arguments]
python -m mpi4py -m MODULE [arguments]
python -m mpi4py -c COMMAND [arguments]
python -m mpi4py --mpi-library | --mpi-lib-version | --mpi-std-version | --version
"""

from __future__ import annotations

import runpy
import sys


def answer(question: str) -> str | None:
    """What is printed for an option that runs nothing; None for what is no such option."""
    import mpi4py

    mpi4py.rc.initialize = mpi4py.rc.finalize = False
    from mpi4py import MPI

    answers = {
        "--mpi-library": MPI.__file__,
        "--mpi-lib-version": MPI.Get_library_version(),
        "--mpi-std-version": "MPI {}.{}".format(*MPI.Get_version()),
        "--version": f"mpi4py {mpi4py.__version__}",
    }
    return answers.get(question)


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    if arguments[0].startswith("--") and (told := answer(arguments[0])) is not None:
        print(told)
        return
    if arguments[0].startswith("-") and (arguments[0] not in ("-m", "-c") or len(arguments) == 1):
        what = "expects an argument" if arguments[0] in ("-m", "-c") else "is no option of it"
        print(f"python -m mpi4py: {arguments[0]} {what}\n\n{__doc__.strip()}", file=sys.stderr)
        sys.exit(2)
    # ompy's initialisation is what makes an uncaught exception end the other ranks too.
    from mpi4py import MPI  # noqa: F401

    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv[:] = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
