"""Table 4.2: one message of several packets whose payload can be told from headers, for the record of the wire."""

from __future__ import annotations

import numpy as np

from ompy_raw_experiments.programs.measuring import Bench


def main() -> None:
    bench = Bench()
    mark, words = bench.options["mark"], bench.options["words"]
    data = np.full(words, mark, "u4")
    if bench.world.rank == 0:
        bench.world.Send(data, 1)
        bench.report(words=words)
    elif bench.world.rank == 1:
        bench.world.Recv(data, 0)


if __name__ == "__main__":
    main()
