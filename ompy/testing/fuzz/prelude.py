"""What every generated program may call.

This is never imported: a stand-alone script begins with the source of what it uses, so all of it needs Python and mpi4py alone.
"""

from __future__ import annotations

import random

from mpi4py import MPI


def data(seed, n):
    """The n bytes of one message: the same for whoever asks, and different from every other's."""
    return random.Random(seed).randbytes(n)


def wipe(memory):
    """Overwrite memory that is the program's again."""
    memoryview(memory)[:] = bytes(len(memory))


def refill(memory, content):
    """Give memory other contents of the same length."""
    memoryview(memory).cast("B")[:] = bytes(content)


def check(what, got, expected):
    """Raise AssertionError, which says where they differ."""
    got, expected = bytes(got), bytes(expected)
    if got != expected:
        wrong = [i for i, pair in enumerate(zip(got, expected, strict=False)) if pair[0] != pair[1]]
        where = f"first at {wrong[0]}: {got[wrong[0]]} for {expected[wrong[0]]}" if wrong else ""
        raise AssertionError(f"{what}: {len(got)} bytes for {len(expected)}, {len(wrong)} are wrong {where}")


def equal(what, got, expected):
    """Raise AssertionError unless the two are equal."""
    if got != expected:
        raise AssertionError(f"{what}: {got!r:.200} for {expected!r:.200}")


def among(what, got, allowed):
    """Raise AssertionError unless it is one of those that MPI allows."""
    if got not in allowed:
        raise AssertionError(f"{what}: {got!r:.200}, not one of {allowed!r:.200}")


def alone(what, told):
    """Raise AssertionError where two ranks have read the same: (target, slot, value) of each of a rank's reads."""
    seen = [read for of_one in told for read in of_one]
    for k, read in enumerate(seen):
        if read in seen[:k]:
            raise AssertionError(
                f"{what}: two origins under exclusive locks read the same, {read[2]}, from slot {read[1]} of {read[0]}"
            )


def check_status(what, status, source, tag, n):
    """Raise AssertionError unless the status tells of a message of n bytes."""
    told = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
    if told != (source, tag, n):
        raise AssertionError(f"{what}: source, tag and bytes are {told}, not {(source, tag, n)}")


def spread(payload, blocks, extent, count, fill=238):
    """Memory of `count` elements of a datatype, made of (offset, length) blocks in its order, that holds a payload."""
    memory = bytearray([fill]) * ((count - 1) * extent + max(o + n for o, n in blocks) if count else 0)
    at = 0
    for k in range(count):
        for offset, length in blocks:
            piece = payload[at : at + length]
            memory[k * extent + offset : k * extent + offset + len(piece)] = piece
            at += length
    return memory


def expect_error(what, call, classes):
    """Raise AssertionError unless the call raises an MPI error of one of these classes."""
    try:
        call()
    except MPI.Exception as error:
        if error.Get_error_class() not in classes:
            raise AssertionError(f"{what}: raised {error}") from None
    else:
        raise AssertionError(f"{what}: no error")


class Late(Exception):
    """What a signal's handler raises."""


armed = []


def late(*_):
    if armed:
        raise Late


def interrupt(call, seconds):
    """Call; whether an exception from a signal's handler, so many seconds later, ended the call first."""
    import signal

    signal.signal(signal.SIGALRM, late)
    done = False
    try:
        armed.append(True)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        done = True
        armed.clear()
    except Late:
        armed.clear()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return not done


def complete(requests, style, seconds=0.001):
    """Complete requests in one of MPI's ways; returns a status for each."""
    status = [MPI.Status() for _ in requests]
    if style == "waitall":
        MPI.Request.Waitall(requests, status)
    elif style == "testall":
        while not MPI.Request.Testall(requests, status):
            pass
    elif style in ("waitany", "testany"):
        for _ in range(len(requests)):
            which, one, flag = -1, MPI.Status(), False
            while not flag:
                if style == "waitany":
                    which, flag = MPI.Request.Waitany(requests, one), True
                else:
                    which, flag = MPI.Request.Testany(requests, one)
            if which < 0:
                raise AssertionError(f"{style}: nothing is active, while requests were not told complete")
            status[which] = one
    elif style in ("waitsome", "testsome"):
        left = len(requests)
        call = MPI.Request.Waitsome if style == "waitsome" else MPI.Request.Testsome
        while left:
            some = [MPI.Status() for _ in requests]
            indices = call(requests, some)
            if indices is None:
                raise AssertionError(f"{style}: nothing is active, while {left} requests were not told complete")
            for place, which in enumerate(indices):
                status[which] = some[place]
            left -= len(indices)
    else:
        for request, one in zip(requests, status, strict=True):
            if style == "test":
                while not request.Test(one):
                    pass
            elif style == "get_status":
                while not request.Get_status(one):
                    pass
                request.Wait()
            else:
                request.Wait(one)
    return status


def complete_interrupted(requests, seconds):
    """Test until all are complete, while exceptions from a signal's handler end calls."""
    import signal

    signal.signal(signal.SIGALRM, late)
    left = 20
    for request in requests:
        done = False
        while not done:
            try:
                armed.append(True)
                signal.setitimer(signal.ITIMER_REAL, seconds if left else 0)
                while not request.Test():
                    pass
                done = True
                armed.clear()
            except Late:
                armed.clear()
                left -= left > 0
    signal.setitimer(signal.ITIMER_REAL, 0)


def run_lanes(*lanes):
    """Run functions at once, each in a thread; raise what the first of them raised."""
    import threading

    problems = []

    def guarded(lane):
        try:
            lane()
        except BaseException as problem:
            problems.append(problem)
            raise

    threads = [threading.Thread(target=guarded, args=(lane,), daemon=True) for lane in lanes[1:]]
    for thread in threads:
        thread.start()
    lanes[0]()
    while any(thread.is_alive() for thread in threads) and not problems:
        for thread in threads:
            thread.join(0.05)
    if problems:
        raise problems[0]


def numbers(seed, n, code="q"):
    """An array of n small numbers, which sums and products of seven represent exactly."""
    import array

    return array.array(code, tuple(random.Random(seed).randbytes(n).translate(bytes(range(64)) * 4)))


def compose(first, second, _=None):
    """An operation that does not commute: pairs (a, b) are the maps a x + b modulo a prime."""
    first, second = memoryview(first).cast("B").cast("q"), memoryview(second).cast("B").cast("q")
    for k in range(0, len(second), 2):
        a, b, c, d = first[k], first[k + 1], second[k], second[k + 1]
        second[k], second[k + 1] = a * c % 1009, (a * d + b) % 1009


def reduced(operation, arrays):
    """What a reduction of arrays gives, reckoned in their order."""
    import array
    import operator
    from functools import reduce

    if operation == "compose":
        values = arrays[-1]
        for earlier in reversed(arrays[:-1]):
            compose(earlier, values)
        return values
    call = {
        "SUM": operator.add, "PROD": operator.mul, "MAX": max, "MIN": min,
        "BAND": operator.and_, "BOR": operator.or_, "BXOR": operator.xor,
        "LAND": lambda x, y: int(bool(x and y)), "LOR": lambda x, y: int(bool(x or y)),
        "LXOR": lambda x, y: int(bool(x) != bool(y)),
    }[operation]  # fmt: skip
    return array.array(arrays[0].typecode, reduce(lambda xs, ys: map(call, xs, ys), arrays))


def spaced(values):
    """An array with a gap behind each element."""
    import array

    return array.array(values.typecode, [x for value in values for x in (value, -1)])


def fetched(what, got, values, added):
    """Raise AssertionError unless each element is one of the values' and some of what others add."""
    for k, element in enumerate(got):
        sums = {value[k] for value in values}
        for other in added:
            sums |= {x + other[k] for x in sums}
        if element not in sums:
            raise AssertionError(f"{what}: element {k} is {element}, not one of {sorted(sums)!r:.200}")


def reap(pid, seconds):
    """Wait for a child's end; AssertionError when it does not come, or not with status 0."""
    import os
    import signal
    import time

    end = time.monotonic() + seconds
    gone, status = 0, 0
    while not gone:
        gone, status = os.waitpid(pid, os.WNOHANG)
        if not gone and time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"the child has not ended within {seconds} s")
        time.sleep(0.001)
    if status:
        raise AssertionError(f"the child's status is {status}")
