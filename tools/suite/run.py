"""mpi4py's own test suite, run on ompy in mpi4py's place.

    python tools/suite/run.py                             every module of the expectations, on 1, 2 and 3 ranks
    python tools/suite/run.py --quick                     a few modules on 2 ranks
    python tools/suite/run.py -n 5 p2p_buf comm           these modules, on 5 ranks
    python tools/suite/run.py -n 2 --mca btl self,zmq     with parameters of ompy
    python tools/suite/run.py --record                    print the outcomes that are not "passed", as lines of expectations

The suite comes from mpi4py's source distribution, which pip fetches into `.cache/suite`; nothing of it is kept in the
repository.  Outcomes are held against `tools/suite/expectations.txt`: an unexpected failure, an unexpected skip and an
unexpected pass all fail the run, and so does a test that was not run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from expectations import Expectations
from outcomes import OUTCOMES, merge

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
VERSION = "4.1.2"
CACHE = TOP / ".cache" / "suite"
QUICK = ("status", "request", "p2p_buf_matched", "p2p_obj_matched", "pickle", "msgzero", "cco_obj", "group")


def fetch() -> Path:
    """The unpacked source distribution."""
    unpacked = CACHE / f"mpi4py-{VERSION}"
    if not unpacked.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "mpi4py"]
        subprocess.run([*download, f"mpi4py=={VERSION}", "--dest", str(CACHE)], check=True)
        with tarfile.open(CACHE / f"mpi4py-{VERSION}.tar.gz") as archive:
            archive.extractall(CACHE, filter="data")
    return unpacked


def run(module: str, ranks: int, suite: Path, mca: list[list[str]], timeout: float) -> tuple[dict[str, tuple[str, str]], str]:
    """Outcome and reason of each test of a module, over all ranks, and what the ranks printed."""
    with tempfile.TemporaryDirectory() as results:
        parameters = [word for name, value in mca for word in ("--mca", name, value)]
        command = [
            sys.executable, "-m", "ompy.cli.ompyrun", "--mpi4py", "--oversubscribe", "-n", str(ranks),
            "--timeout", str(timeout), "--report-state-on-timeout", *parameters,
            sys.executable, str(HERE / "rank.py"), f"test_{module}", results,
        ]  # fmt: skip
        paths = [str(suite / "test"), str(suite / "src"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        done = subprocess.run(
            command, cwd=suite / "test", env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        records = [json.loads(line) for path in sorted(Path(results).glob("*.jsonl")) for line in path.read_text().splitlines()]
    return merge(records, ranks), done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help="names of test modules without test_; default: those of the expectations")
    parser.add_argument("-n", dest="ranks", type=int, action="append", help="number of ranks; may be given again")
    parser.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"))
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one module (default: 300)")
    parser.add_argument("--quick", action="store_true", help="a few modules on 2 ranks")
    parser.add_argument("--record", action="store_true", help="print the outcomes that are not passed, and judge nothing")
    parser.add_argument("--verbose", action="store_true", help="print the output of modules with a surprise")
    arguments = parser.parse_args()
    suite = fetch()
    expected = Expectations(HERE / "expectations.txt")
    modules = arguments.modules or (QUICK if arguments.quick else expected.modules)
    surprises = 0
    began = time.monotonic()
    for ranks in arguments.ranks or ([2] if arguments.quick else [1, 2, 3]):
        print(
            "".join((f"{'module':<24}{'ranks':>6}", *(f"{outcome:>10}" for outcome in OUTCOMES), f"{'seconds':>10}")),
            flush=True,
        )
        for module in modules:
            start = time.monotonic()
            outcomes, output = run(module, ranks, suite, arguments.mca, arguments.timeout)
            counts = [sum(outcome == name for outcome, _ in outcomes.values()) for name in OUTCOMES]
            row = "".join((f"{module:<24}{ranks:>6}", *(f"{count:>10}" for count in counts)))
            print(f"{row}{time.monotonic() - start:>10.1f}", flush=True)
            if arguments.record:
                for test, (outcome, reason) in outcomes.items():
                    if outcome != "passed":
                        print(f"{outcome} {test} : {reason}")
                continue
            wrong = expected.surprises(outcomes, ranks)
            if not outcomes:
                wrong.append(f"test_{module}: no test was loaded")
            surprises += len(wrong)
            for line in wrong:
                print(f"    {line}")
            if wrong and (arguments.verbose or not outcomes):
                print(output)
    print(f"{surprises} surprises in {time.monotonic() - began:.0f} s")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
