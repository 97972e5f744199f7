"""Processes that know each other by a secret: those of one job, or those of two groups that met (MPI-4.1, 11.9).

    job "a"   a0 a1 a2          a1 and a2 connect to b0 and b1:      b0 b1   job "b"
              \\______/                                                \\___/
            circle of job a      circle of the meeting: b0 b1 a1 a2    circle of job b
                                 numbers                 0  1  2  3

A transport that asks whoever connects to it for proof of who he is derives that proof from the circle in which the two
know each other: for most peers that is the job.
"""

from __future__ import annotations


class Circle:
    """One circle, as one of its members sees it.

    Parameters:
        name: different from every other circle's.
        secret: known to the members alone.
        me: number of this process.
        size: how many members there are, numbered from 0.
    """

    __slots__ = ("me", "name", "secret", "size")

    def __init__(self, name: str, secret: bytes, me: int, size: int) -> None:
        self.name = name
        self.secret = secret
        self.me = me
        self.size = size

    def __repr__(self) -> str:
        return f"<circle {self.name}, number {self.me} of {self.size}>"
