"""The drivers, by name."""

from __future__ import annotations

from arguments import Arguments
from board import JobBoard
from cards import CARD_DRIVERS
from command_line import CommandLine
from entry_points import EntryPoints
from harness import Driver
from packets import DrPackets
from parameters import Parameters
from pmi import PmiClient, PmiServer
from zmq_unauthenticated import MECHANISMS, UnauthenticatedCallers

DRIVERS: dict[str, Driver] = {
    driver.name: driver
    for driver in (
        Arguments(),
        EntryPoints(),
        Parameters(),
        PmiServer(),
        PmiClient(),
        JobBoard(),
        CommandLine(),
        *CARD_DRIVERS,
        DrPackets(),
        *map(UnauthenticatedCallers, MECHANISMS),
    )
}
