"""`docs/users/clients.md`: the table for people."""

from __future__ import annotations

from typing import Any

from client import Client
from environment import LIBRARIES
from results import key, verdict

HEAD = """# Programs written for mpi4py

Libraries, test tools and launchers that use mpi4py, unchanged, over ompy and over Open MPI's wheel, in the same environment.
ompy stands in for mpi4py's `MPI` (`ompy activate`), everything else is the same files. ompy is installed for the runs over Open
MPI as well, and not chosen: that column shows also that it leaves alone who does not use it, the users of other pytest plugins
among them.

Seconds are the median of {rounds}, of whole runs: start of the ranks, imports and tests together; CPU seconds are those of all
processes of a run. With a star: as soon as the medians were nearer to each other than 10 %, or than runs of one library are,
the row went on in runs at once with the other library, each stopped while the other has its turn of half a second, so that both
meet the same of what else the processor does, and the times are of as many of these. `-` ranks: the
client starts its jobs itself. A number of ranks that is not there is one that the client's tests are not made for.

```sh
.venv/bin/python tools/clients                                # all of them; the first time installs for some minutes
.venv/bin/python tools/clients schwimmbad mpi4py-fft -n 2     # these, on 2 ranks; the table keeps the others' figures
.venv/bin/python tools/clients --list
```

| client | Python | ranks | passed, skipped, failed: ompy | Open MPI | seconds: ompy | Open MPI | CPU: ompy | Open MPI | |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""


def counts(told: dict[str, Any] | None) -> str:
    return "" if told is None else f"{told['passed']}, {told['skipped']}, {len(told['failed'])}"


def time(told: dict[str, Any] | None, kind: str) -> str:
    return "" if told is None else f"{told[kind]:.1f}{'*' * (kind == 'seconds' and bool(told.get('in_turns')))}"


def text(clients: dict[str, Client], kept: dict[str, dict[str, Any]]) -> str:
    """The page, with a row for each client, Python and number of ranks that has results."""
    versions = sorted({name.rpartition(" ")[2] for name in kept}, key=lambda version: int(version.partition(".")[2]))
    rows, missing = [], []
    rounds = {told.get("in_turns") or told["rounds"] for libraries in kept.values() for told in libraries.values()}
    for client in clients.values():
        found = False
        for version in versions:
            for trial in client.trials:
                libraries = kept.get(key(client, trial, version))
                if libraries is None:
                    continue
                found = True
                ours, theirs = (libraries.get(name) for name in LIBRARIES)
                cells = [client.name, version, str(trial.ranks or "-"), counts(ours), counts(theirs)]
                cells += [time(told, kind) for kind in ("seconds", "cpu_seconds") for told in (ours, theirs)]
                cells.append("; ".join(verdict(libraries)))
                rows.append("| " + " | ".join(cells) + " |")
        if not found:
            missing.append(client.name)
    many = " to ".join(str(number) for number in sorted({min(rounds), max(rounds)})) if rounds else "0"
    lines = [HEAD.format(rounds=f"{many} run{'s' * (many != '1')}") + "\n".join(rows), "", "## What is run", ""]
    lines += [f"- **{client.name}** ({client.about}): {client.tests}" for client in clients.values()]
    lines += ["", "## Differences, and why", ""]
    lines += [f"- **{client.name}**: {client.note}" for client in clients.values() if client.note]
    if missing:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    return "\n".join(lines) + "\n"
