"""What a proxy is started with, and what becomes of what it says."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.plm.launch import Launch, Probe
from ompy.testing.conformance.plm.processes import children
from ompy.testing.conformance.plm.rank import PlmRank

check = Collection()

PLAIN = ("words", "of", "letters")
# Each means something to some shell, or is easily lost.
ODD = (
    "a b", "", "  ", "'", '"', "it's", "$HOME", "$(id)", "`id`", "\\", "\\n", "*", "?", "[a-z]", "~", "#", "!", "{a,b}",
    "{host}", "%h", "a;b", "&", "|", "(", ")", "<in", ">out", "=", "A=1", "-x", "--", "tab\there", "line\nend", "é", "",
)  # fmt: skip
# The job's environment is in what proxies are told: longer than what a pipe takes.
LENGTHS = (0, 1, 4096, 300_000)
LINES, LENGTH = 200, 1000
OUTPUT, ERRORS = 1, 2  # descriptors


def check_words(launch: Launch, words: tuple[str, ...], clause: str) -> None:
    for probe in launch.came:
        if probe.arrival.words[:-2] != list(words):
            raise Breach(clause, f"of a command with {words} the words {probe.arrival.words[:-2]} arrived")


@check("name", "agents", "command")
def every_proxy_knows_its_host(rank: PlmRank) -> None:
    """And there is one on each."""
    with Launch(rank, rank.hosts, PLAIN) as launch:
        launch.gather()
        # Where more than one is started on a host, others may come later.
        if not launch.until(lambda: launch.probes.keys() >= set(rank.hosts)):
            names = [probe.arrival.name for probe in launch.came]
            raise Breach("name", f"the proxies of the hosts {rank.hosts} take themselves for those of {names}")
        check_words(launch, PLAIN, "command")
        launch.read()
        launch.end()
        launch.until(lambda: len(launch.came) > len(rank.hosts) or not children())
        if len(launch.came) > len(rank.hosts):
            raise Breach("command", f"for {len(rank.hosts)} hosts more proxies were started than one on each")


@check("command")
def words_arrive_one_for_one(rank: PlmRank) -> None:
    with Launch(rank, rank.hosts, ODD) as launch:
        launch.gather()
        check_words(launch, ODD, "command")


@check("together", ranks=2)
def all_run_at_the_same_time(rank: PlmRank) -> None:
    with Launch(rank, rank.hosts, PLAIN) as launch:
        launch.gather()


@check("secret")
def nobody_else_sees_the_input(rank: PlmRank) -> None:
    secret = secrets.token_hex(32)
    with Launch(rank, rank.hosts, PLAIN, b'{"secret": "%s"}\n' % secret.encode()) as launch:
        launch.gather()
        launch.read()
        if found := list(seen(secret.encode(), rank.temporary)):
            raise Breach("secret", f"what proxies are told stands in {found[0]}")
        launch.end()
        launch.has_ended()
        if any(secret in line for line in launch.said):
            raise Breach("secret", "what proxies are told is in the agent's output, which people are shown")


def seen(secret: bytes, folder: Path) -> Iterator[str]:
    """Where others may read it."""
    places = [path / part for path in Path("/proc").iterdir() if path.name.isdigit() for part in ("cmdline", "environ")]
    for path in [*places, *(path for path in folder.rglob("*") if path.is_file())]:
        try:
            if secret in path.read_bytes():
                yield f"{path}"
        except OSError:
            continue  # it has gone, or is another user's


@check("input")
def the_input_arrives_to_its_last_byte(rank: PlmRank) -> None:
    for length in LENGTHS:
        told = rank.random.randbytes(length)
        with Launch(rank, rank.hosts, PLAIN, told) as launch:
            launch.gather()
            got = launch.read()
        for data in got:
            if data is None:
                raise Breach("input", f"a proxy has not seen the end of {length} bytes of input in {rank.patience:g} s")
            if data != told:
                raise Breach("input", f"of {length} bytes of input a proxy has got {len(data)}, or others")


@check("output")
def output_comes_out_while_proxies_run(rank: PlmRank) -> None:
    with Launch(rank, rank.hosts, PLAIN) as launch:
        launch.gather()
        launch.read()
        sent: list[str] = []
        for probe in launch.came:
            for descriptor in (OUTPUT, ERRORS):
                lines = [f"{probe.arrival.name} {descriptor} {number} ".ljust(LENGTH, "x") for number in range(LINES)]
                sent += lines
                comes_out(launch, probe, descriptor, lines)
        launch.end()
        launch.has_ended()
        if more := [line for line in launch.said if line not in set(sent)]:
            raise Breach("output", f"nothing went wrong, and agents have written {more}")


def comes_out(launch: Launch, probe: Probe, descriptor: int, lines: list[str]) -> None:
    launch.write(probe, descriptor, "".join(f"{line}\n" for line in lines).encode())
    wanted = set(lines)

    def are_here() -> bool:
        return sum(line in wanted for line in launch.said) >= len(lines)

    if not launch.until(are_here):
        here = sum(line in wanted for line in launch.said)
        words = f"of {len(lines)} lines that a proxy has written to descriptor {descriptor}, {here} came out, whole"
        raise Breach("output", f"{words}, in {launch.rank.patience:g} s")
    if [line for line in launch.said if line in wanted] != lines:
        raise Breach("output", f"lines that a proxy has written to descriptor {descriptor} came out in another order, or twice")
