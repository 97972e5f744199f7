"""Threads and signals: messages of every kind while exceptions from a signal handler end calls at random times.

    ompyrun -n 3 --oversubscribe --mca btl self,zmq python tests/stress/interruptions.py --seconds 60 --seed 1

On each rank:

    main        sends to every rank's `sink`, and receives from every rank's `source`; a timer raises at random times
    sink        receives what the main threads send: each message whose call returned, once, whole, in order
    source      sends to the main threads until they are interrupted no more: of its messages one may be missing for each
                receive that was interrupted
    pair        exchanges messages with its neighbours, exactly, and takes part in collectives

Every message carries its number, how many before it were certainly sent, and bytes made from both.  A line for each rank at
the end; whatever is wrong ends the job with status 3, silence for a minute with the traceback of every thread.
"""

import argparse
import faulthandler
import os
import random
import signal
import sys
import threading
import time
import traceback

import numpy as np

from ompy import MPI

INTERRUPTED, FED, PAIR, WORDS = 1, 2, 3, 4
END = -1
LENGTHS = [0, 1, 40, 1000, 4000, 5000, 20_000, 70_000, 300_000, 1_500_000]
STRIDED = {}


class Late(Exception):
    """What the signal handler raises."""


class Armed:
    """While it is entered, the signal handler raises."""

    entered = False

    def __enter__(self):
        self.entered = True

    def __exit__(self, *_):
        self.entered = False

    def raise_late(self, *_):
        """The signal handler."""
        if self.entered:
            raise Late


def fail(words):
    print(f"rank {MPI.COMM_WORLD.rank}: {words}", flush=True)
    MPI.COMM_WORLD.Abort(3)


def message(number, certain, length):
    """Two numbers, then bytes that follow from them."""
    data = np.empty(16 + length, np.uint8)
    data[:16].view(np.int64)[:] = number, certain
    data[16:] = np.arange(number & 0xFF, (number & 0xFF) + length, dtype=np.int64).astype(np.uint8)
    return data


def opened(data):
    """The numbers of a message that is as it was made."""
    number, certain = (int(value) for value in data[:16].view(np.int64))
    if number != END and not np.array_equal(data, message(number, certain, len(data) - 16)):
        fail(f"message {number} of {len(data)} bytes is damaged")
    return number, certain


def strided(data):
    """The message as every second byte of an array, and the type that says so."""
    spread = np.zeros(2 * len(data), np.uint8)
    spread[::2] = data
    if len(data) not in STRIDED:
        STRIDED[len(data)] = MPI.BYTE.Create_vector(len(data), 1, 2).Commit()
    return [spread, 1, STRIDED[len(data)]]


class Rank:
    """What one rank does."""

    def __init__(self, seconds, seed, period):
        self.comm = MPI.COMM_WORLD.Dup()
        self.pairs = MPI.COMM_WORLD.Dup()
        self.end = time.monotonic() + seconds
        self.period = period
        self.random = random.Random(f"{seed} {self.comm.rank}")
        self.stopping = False
        self.peers_stopping = False
        self.armed = Armed()
        self.heard = time.monotonic()
        self.counts = dict.fromkeys(
            ("sent", "interrupted sends", "received", "interrupted receives", "lost to those", "sunk", "pairs"), 0
        )
        self.others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]

    # -- the main thread

    def main(self):
        """Send and receive at random, interrupted at random."""
        self.numbers = dict.fromkeys(self.others, 0)
        self.certain = dict.fromkeys(self.others, 0)
        self.expected = dict.fromkeys(self.others, 0)
        self.excused = dict.fromkeys(self.others, 0)
        self.ended = set()
        self.asked = None
        signal.signal(signal.SIGALRM, self.armed.raise_late)
        while time.monotonic() < self.end:
            action = self.random.choice((self.send, self.send, self.receive))
            signal.setitimer(signal.ITIMER_REAL, self.random.expovariate(1 / self.period))
            action()
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.stopping = True
        for peer in self.others:
            self.comm.Send(message(END, self.certain[peer], 0), peer, INTERRUPTED)
        while len(self.ended) < len(self.others):
            self.receive()

    def send(self):
        """One message, which counts as certain once its call has returned."""
        peer = self.random.choice(self.others)
        number = self.numbers[peer]
        self.numbers[peer] += 1
        data = message(number, self.certain[peer], self.random.choice(LENGTHS))
        way = self.random.randrange(5)
        requests = [self.comm.Isend(data, peer, INTERRUPTED)] if way > 2 else []
        if requests:
            self.certain[peer] += 1
        try:
            with self.armed:
                if way == 0:
                    self.comm.Send(data, peer, INTERRUPTED)
                elif way == 1:
                    self.comm.Ssend(data, peer, INTERRUPTED)
                elif way == 2:
                    self.comm.Send(strided(data), peer, INTERRUPTED)
                elif way == 3:
                    requests[0].Wait()
                else:
                    while not MPI.Request.Testall(requests):
                        pass
        except Late:
            self.armed.entered = False  # it may have come while that was being said
            self.counts["interrupted sends"] += 1
            if not requests:
                data[:] = 0xEE  # the program's memory is its own again
            return
        if not requests:
            self.certain[peer] += 1
        self.counts["sent"] += 1

    def receive(self):
        """One message from any source, blocking or not."""
        way = self.random.randrange(3)
        status = MPI.Status()
        if self.asked is not None or way == 0:
            # Perhaps completed in a later call: nothing may be lost.
            if self.asked is None:
                block = np.zeros(16 + LENGTHS[-1], np.uint8)
                self.asked = self.comm.Irecv(block, MPI.ANY_SOURCE, FED), block
            request, block = self.asked
            try:
                with self.armed:
                    while not request.Test(status):
                        pass
            except Late:
                self.armed.entered = False
                if request:
                    self.counts["interrupted receives"] += 1
                    return
            self.asked = None
        else:
            block = np.zeros(16 + LENGTHS[-1], np.uint8)
            found = self.comm.Mprobe(MPI.ANY_SOURCE, FED) if way == 2 else None
            try:
                with self.armed:
                    if found is not None:
                        found.Recv(block, status)
                    else:
                        self.comm.Recv(block, MPI.ANY_SOURCE, FED, status)
            except Late:
                self.armed.entered = False
                self.counts["interrupted receives"] += 1
                for peer in self.others:
                    self.excused[peer] += 1
                if found:
                    found.Recv(block)  # the call had not begun, and its message must be received
                block[:] = 0xEE
                return
        self.take(status.source, block[: status.Get_count(MPI.BYTE)])

    def take(self, peer, data):
        """Look at a message of a peer's source."""
        self.heard = time.monotonic()
        number, _ = opened(data)
        if number == END:
            self.ended.add(peer)
            return
        missing = number - self.expected[peer]
        if missing < 0 or missing > self.excused[peer]:
            fail(f"message {number} of rank {peer}, expected {self.expected[peer]}, after {self.excused[peer]} interruptions")
        self.counts["received"] += 1
        self.counts["lost to those"] += missing
        self.excused[peer] -= missing
        self.expected[peer] = number + 1

    # -- the other threads

    def sink(self):
        """Receive what main threads send."""
        last = dict.fromkeys(self.others, -1)
        got = dict.fromkeys(self.others, 0)
        left = set(self.others)
        block = np.zeros(16 + LENGTHS[-1], np.uint8)
        while left:
            status = MPI.Status()
            self.comm.Recv(block, MPI.ANY_SOURCE, INTERRUPTED, status)
            self.heard = time.monotonic()
            peer = status.source
            number, certain = opened(block[: status.Get_count(MPI.BYTE)])
            if got[peer] < certain:
                fail(f"{certain} messages of rank {peer} were certainly sent before message {number}, {got[peer]} have come")
            if number == END:
                left.remove(peer)
                continue
            if number <= last[peer]:
                fail(f"message {number} from rank {peer} came after message {last[peer]}")
            last[peer] = number
            got[peer] += 1
            self.counts["sunk"] += 1
        self.peers_stopping = True

    def source(self):
        """Send to main threads."""
        choice = random.Random(self.comm.rank)
        for number in range(1 << 60):
            if self.peers_stopping:
                break  # no receive is interrupted any more, and none loses the end
            for peer in self.others:
                data = message(number, number, choice.choice(LENGTHS))
                if choice.random() < 0.5:
                    self.comm.Ssend(data, peer, FED)
                else:
                    self.comm.Ssend(strided(data), peer, FED)
        for peer in self.others:
            self.comm.Send(message(END, number, 0), peer, FED)

    def pair(self):
        """Exchange messages in a ring, and agree on the end."""
        choice = random.Random(1)
        rank, size = self.pairs.rank, self.pairs.size
        number = 0
        while True:
            length = choice.choice(LENGTHS)
            block = np.zeros(16 + length, np.uint8)
            self.pairs.Sendrecv(message(number, number, length), (rank + 1) % size, PAIR, block, (rank - 1) % size, PAIR)
            if opened(block)[0] != number:
                fail(f"a neighbour's message {opened(block)[0]}, expected {number}")
            words = self.pairs.sendrecv(
                ("number", number, "x" * (number % 600)), (rank + 1) % size, WORDS, None, (rank - 1) % size, WORDS
            )
            if words != ("number", number, "x" * (number % 600)):
                fail(f"a neighbour's object {words!r:.80}, expected number {number}")
            self.counts["pairs"] += 1
            number += 1
            if number % 8 == 0 and self.pairs.allreduce(self.stopping, MPI.LAND):
                return

    def run(self):
        """All threads to their end; returns what was counted."""
        failures = []

        def guarded(work):
            try:
                work()
            except BaseException as error:
                failures.append(error)
                traceback.print_exception(error)
                sys.stderr.flush()
                os._exit(3)

        threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in (self.sink, self.source, self.pair)]
        for thread in threads:
            thread.start()
        self.main()
        for thread in threads:
            thread.join()
        return self.counts


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", default=str(time.time_ns()))
    parser.add_argument("--period", type=float, default=0.002, help="mean time between exceptions, seconds")
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(arguments.seconds + 60, exit=True)
    seed = MPI.COMM_WORLD.bcast(arguments.seed)
    rank = Rank(arguments.seconds, seed, arguments.period)
    counts = rank.run()
    rank.comm.Barrier()
    print(f"rank {rank.comm.rank}, seed {seed}: " + ", ".join(f"{count} {name}" for name, count in counts.items()), flush=True)


if __name__ == "__main__":
    main()
