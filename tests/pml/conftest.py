"""The process that runs these tests stays a job of its own afterwards, whichever pairs they made of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ompy.core.group import set_this_process
from ompy.core.proc import process_table


@pytest.fixture(autouse=True)
def same_processes_afterwards() -> Iterator[None]:
    table = process_table()
    known = [table.get(index) for index in range(len(table))]
    yield
    table.clear()
    table.extend(len(known))
    table.set_resolver(known.__getitem__)
    set_this_process(next((proc.index for proc in known if proc.is_self), 0))
