"""Who sets the pace of a TCP connection: what is chosen on short paths and on long ones."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ompy.core import congestion
from ompy.core.congestion import AUTO, CongestionControl, algorithm_of


@pytest.fixture
def connected() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as link:
        yield link


@pytest.mark.parametrize(("shortest", "expected"), [(congestion.SHORT, "near"), (0, "far")])
def test_what_sends_by_a_clock_is_for_long_paths(
    connected: socket.socket, shortest: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = algorithm_of(connected)
    monkeypatch.setattr(congestion, "PACED", (system,))
    monkeypatch.setattr(congestion, "INSTEAD", ("tortoise", "reno"))  # the first that there is
    monkeypatch.setattr(congestion, "SHORT", shortest)
    control = CongestionControl(AUTO, "btl_some_congestion_control")
    assert (control.near, control.far) == ("reno", system)
    with socket.socket() as link:
        control.prepare(link)
        assert algorithm_of(link) == "reno"
    control.settle(connected)
    assert algorithm_of(connected) == getattr(control, expected)


def test_a_system_without_a_clock_is_left_as_it_is(connected: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "PACED", ("none of them",))
    control = CongestionControl(AUTO, "btl_some_congestion_control")
    system = algorithm_of(connected)
    control.prepare(connected)
    control.settle(connected)
    assert algorithm_of(connected) == system == control.near == control.far


def test_a_round_trip_on_this_host_is_a_short_path(connected: socket.socket) -> None:
    assert 0 < congestion.round_trip(connected) < congestion.SHORT
