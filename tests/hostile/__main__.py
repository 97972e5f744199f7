"""`tests/hostile DRIVER [--inputs N] [--seed N]`: mutated inputs; exit code 1 when something was found."""

from __future__ import annotations

import argparse
import random
import sys
import time

from drivers import DRIVERS
from harness import run, run_child


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        name, seed, first, last, page = sys.argv[2:]
        run_child(DRIVERS[name], int(seed), int(first), int(last), page)
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver", choices=sorted(DRIVERS))
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--stop", type=int, default=20, help="after so many findings")
    given = parser.parse_args()
    print(f"{given.driver}: {given.inputs} inputs of seed {given.seed}", flush=True)
    begun, count = time.monotonic(), 0
    for finding in run(DRIVERS[given.driver], given.seed, given.inputs):
        count += 1
        print(finding, flush=True)
        if count == given.stop:
            break
    print(f"{count} findings in {time.monotonic() - begun:.0f} s")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
