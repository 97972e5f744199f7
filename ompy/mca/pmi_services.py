"""What a PMI-1 server does for a job that runs: it starts processes, and keeps ports under names.

To start some takes a block of lines for each program (`mcmd=spawn`); there is one answer for all.
"""

from __future__ import annotations

import os

from ompy.core.errors import ERR_ARG, ERR_SPAWN, SUCCESS, MPIError
from ompy.core.progress import serve_until_readable
from ompy.mca.rte import Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ompy.mca.pmi_wire import Wire
    from ompy.mca.rte import Order

# Under which the spawned find the port of those who have spawned them.
PARENT_KEY = "ompy_parent_port"
# And whether these may be on other hosts: yes or no.
ELSEWHERE_KEY = "ompy_parents_elsewhere"
# Of a line, in bytes.
LONGEST = 60000
# Lines of a request: ompy's launcher reads no more of one (`BLOCK_LIMIT` of `ompy/runtime/pmi_server.py`).
MOST_LINES = 64 * 1024


def blocks(orders: Sequence[Order], values: Mapping[str, str], is_own: bool) -> str:
    """The lines of the request.  ERR_ARG for words that don't fit into a line, and for more of them than a launcher takes.

    Parameters:
        values: what the new processes find in their key-value space.
        is_own: ompy's launcher is to read it, to whom an argument of several lines can be told.
    """
    lines = []
    for number, order in enumerate(orders, 1):
        lines += ["mcmd=spawn", f"nprocs={order.count}", f"execname={order.command}"]
        lines += [f"totspawns={len(orders)}", f"spawnssofar={number}"]
        for place, argument in enumerate(order.arguments, 1):
            has_lines = is_own and "\n" in argument
            lines += [f"hex{place}={os.fsencode(argument).hex()}" if has_lines else f"arg{place}={argument}"]
        lines += [f"argcnt={len(order.arguments)}"]
        lines += [f"preput_num={len(values)}"]
        for place, (key, value) in enumerate(values.items()):
            lines += [f"preput_key_{place}={key}", f"preput_val_{place}={value}"]
        hints = [(key, value) for key, value in order.info.items() if value]
        lines += [f"info_num={len(hints)}"]
        for place, (key, value) in enumerate(hints):
            lines += [f"info_key_{place}={key}", f"info_val_{place}={value}"]
        lines += ["endcmd"]
    for line in lines:
        if "\n" in line or "\0" in line:
            raise MPIError(
                ERR_ARG, f"command, argument or hint {line.partition('=')[2]!r}: a launcher takes no line ends in it"
            )
        if len(line.encode("utf-8", "surrogateescape")) > LONGEST:
            raise MPIError(
                ERR_ARG,
                f"command, argument or hint {line.partition('=')[2][:40]!r}..: a launcher takes at most {LONGEST} bytes",
            )
    if len(lines) > MOST_LINES:
        words = sum(len(order.arguments) for order in orders)
        raise MPIError(
            ERR_ARG,
            f"commands, arguments and hints are {len(lines)} lines to the launcher, which takes at most {MOST_LINES}: "
            f"hand some of the {words} arguments over in a file, or in a message",
        )
    return "".join(f"{line}\n" for line in lines)


def outcome(answer: Mapping[str, str], count: int) -> Started:
    """What a launcher has answered.  ERR_SPAWN, with its reason, when the processes were not started."""
    if answer.get("rc", "0") != "0":
        try:
            reason = bytes.fromhex(answer.get("message", "")).decode("utf-8", "replace")
        except ValueError:
            reason = ""
        raise MPIError(ERR_SPAWN, reason or f"the launcher has started nothing: {dict(answer)}")
    codes = answer.get("errcodes", "").split(",")
    found = [SUCCESS if code in ("", "0") else ERR_SPAWN for code in codes]
    return Started(answer.get("jobid", ""), (found + [SUCCESS] * count)[:count])


def escaped(service: str) -> str:
    """The name of a service without a space, which a PMI value can't hold."""
    return "".join(sign if (sign.isalnum() and sign.isascii()) or sign in "-_.:/" else f"%{ord(sign):x}%" for sign in service)


def is_good(answer: Mapping[str, str]) -> bool:
    return answer.get("rc", "0") == "0" and answer.get("info", "ok") == "ok"


class PmiServices:
    """The part of an `Rte` whose launcher speaks PMI-1."""

    wire: Wire
    size: int
    is_on_one_host: bool
    is_own = False

    @property
    def universe_size(self) -> int:
        answer = self.wire.ask("get_universe_size", "universe_size").get("size", "")
        # Launchers that know nothing of it say so in various ways.
        return max(self.size, int(answer)) if answer.isdecimal() and len(answer) < 10 else self.size

    def wait_for_start(self, descriptor: int) -> None:
        """Until the launcher has said what became of orders."""
        serve_until_readable(descriptor)

    def spawn(self, orders: Sequence[Order], port: str) -> Started:
        values = {PARENT_KEY: port, ELSEWHERE_KEY: "no" if self.is_on_one_host else "yes"}
        answer = self.wire.request(blocks(orders, values, self.is_own), "spawn_result", self.wait_for_start)
        return outcome(answer, sum(order.count for order in orders))

    def cancel_spawn(self, port: str) -> None:
        if self.is_own:
            self.wire.tell(f"spawn_cancel port={port}")

    def publish(self, service: str, port: str) -> bool:
        return is_good(self.wire.ask(f"publish_name service={escaped(service)} port={port}", "publish_result"))

    def lookup(self, service: str) -> str:
        answer = self.wire.ask(f"lookup_name service={escaped(service)}", "lookup_result")
        return answer.get("port", "") if is_good(answer) else ""

    def unpublish(self, service: str) -> bool:
        return is_good(self.wire.ask(f"unpublish_name service={escaped(service)}", "unpublish_result"))
