"""The table of transports, of a job on several hosts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ompy_hook_comm_method import display


class Collected:
    """Rank 0 of a job whose other ranks have published their rows."""

    rank, size = 0, 3

    def put(self, key: str, value: bytes) -> None:
        pass

    def commit_and_fence(self) -> None:
        pass

    def get(self, rank: int, key: str) -> bytes:
        return f"host{rank} {' '.join('self' if peer == rank else 'tcp' for peer in range(3))}".encode()


@pytest.mark.parametrize("most", [3, 2], ids=["table", "summary"])
def test_each_rank_is_on_its_own_host(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: int) -> None:
    proc = SimpleNamespace(host="host0")
    monkeypatch.setattr(display, "process_table", lambda: SimpleNamespace(get=lambda rank: proc))
    monkeypatch.setattr(display, "method", lambda pml, rank: "self" if rank == 0 else "tcp")
    rte: Any = Collected()
    pml: Any = None
    display.display(rte, pml, most)
    lines = capsys.readouterr().err.splitlines()
    if most == 3:
        assert [line.split()[-1] for line in lines[2:]] == ["host0", "host1", "host2"]
    else:
        assert [line.strip() for line in lines[1:]] == ["between hosts: tcp for 6 pairs", "to itself: self for 3 pairs"]
