"""What the pages show as code does what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parent.parent.parent / "docs" / "developers"


def snippet(page: str) -> dict[str, object]:
    """The names that the first block of Python on a page defines."""
    found = re.search(r"^```python\n(.*?)^```", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    names: dict[str, object] = {"__name__": "snippet"}
    exec(compile("from __future__ import annotations\n" + found[1], page, "exec"), names)
    return names


@pytest.mark.ompy(3)
def test_the_chain_of_the_page_on_schedules_broadcasts_in_every_form(comm):
    from ompy.core.memory import address_of
    from ompy.core.progress import wait_request
    from ompy.core.typemap import predefined
    from ompy.mca.coll import FUNCTIONS, CollectiveCall
    from ompy.mpi.comm import core_of

    core, bcast = core_of(comm), FUNCTIONS.index("bcast")
    chain = snippet("schedules.md")["Chain"]("chain")
    for root in range(comm.size):
        for form in ("run", "start", "init"):
            memory = bytearray(b"from the root" if comm.rank == root else 13)
            call = CollectiveCall()
            call.send_address, call.send_count, call.send_type, call.root = address_of(memory), 13, predefined(1), root
            request = getattr(chain, form)(bcast, call, core)
            for _ in range(2 if form == "init" else 1):
                if form == "init":
                    request.start()
                if form != "run":
                    wait_request(request)
                assert memory == b"from the root"
                if form == "init" and comm.rank != root:
                    memory[:] = bytes(13)
            comm.Barrier()


def test_the_counters_of_the_page_on_observing_are_counters():
    from ompy.mca.component import Counter

    counters = snippet("observing.md")["counters"]
    assert [counter.kind for counter in counters if isinstance(counter, Counter)] == ["counter", "level"]
