"""The conversation with the launcher."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator

import pytest

from ompy.mca.pmi_wire import Wire


class Interrupted(Exception):
    pass


@pytest.fixture
def server() -> Iterator[tuple[socket.socket, Wire]]:
    """The other end, and a wire; the first SIGUSR1 raises Interrupted."""
    raised = []

    def interrupt(number: int, frame: object) -> None:
        raised.append(number)
        if len(raised) == 1:
            raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    here, there = socket.socketpair()
    with here, there:
        yield here, Wire(there.fileno())
    signal.signal(signal.SIGUSR1, before)


def interrupt_until(ended: threading.Event) -> None:
    """Again and again: one that comes before the wait for an answer begins does not end it."""
    while not ended.wait(0.01):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)


def heard(end: socket.socket) -> str:
    return end.recv(4096).decode()


@pytest.mark.parametrize("pieces", [[b"cmd=lookup_result port=late\n"], [b"cmd=lookup_resu", b"lt port=late\n"], []])
def test_the_answer_to_a_question_that_a_signal_ended_is_nobody_else_s(server, pieces: list[bytes]) -> None:
    end, wire = server
    questions = []

    def serve() -> None:
        questions.append(heard(end))
        for piece in pieces[:-1]:
            end.sendall(piece)
        interrupt_until(ended)
        end.sendall(pieces[-1] if pieces else b"cmd=lookup_result port=late\n")
        questions.append(heard(end))
        end.sendall(b"cmd=process_failed rank=3\ncmd=lookup_result port=right\n")

    ended = threading.Event()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with pytest.raises(Interrupted):
        wire.ask("lookup_name service=one", "lookup_result")
    ended.set()
    assert wire.ask("lookup_name service=two", "lookup_result")["port"] == "right"
    thread.join()
    assert questions == ["cmd=lookup_name service=one\n", "cmd=lookup_name service=two\n"]
    assert wire.listen() == [{"cmd": "process_failed", "rank": "3"}]


def test_a_late_answer_is_not_taken_for_what_the_launcher_says_unasked(server) -> None:
    end, wire = server
    ended = threading.Event()
    thread = threading.Thread(target=lambda: (heard(end), interrupt_until(ended)), daemon=True)
    thread.start()
    with pytest.raises(Interrupted):
        wire.ask("lookup_name service=one", "lookup_result")
    ended.set()
    thread.join()
    end.sendall(b"cmd=lookup_result port=late\ncmd=process_failed rank=1\n")
    assert wire.listen() == [{"cmd": "process_failed", "rank": "1"}]
    end.sendall(b"cmd=lookup_result port=right\n")
    assert wire.ask("lookup_name service=two", "lookup_result")["port"] == "right"


def test_questions_together_have_an_answer_each(server) -> None:
    end, wire = server
    end.sendall(b"cmd=a n=1\ncmd=process_failed rank=0\ncmd=b n=2\n")
    assert [answer["n"] for answer in wire.ask_together([("x", "a"), ("y", "b")])] == ["1", "2"]
    assert heard(end) == "cmd=x\ncmd=y\n"
    wire.tell("mput_only")
    assert heard(end) == "cmd=mput_only\n"


def test_what_comes_in_one_piece_with_an_answer_is_heard(server) -> None:
    end, wire = server
    end.sendall(b"cmd=get_result value=x\ncmd=process_failed rank=2\ncmd=process_failed rank=3\n")
    assert wire.ask("get key=a", "get_result")["value"] == "x"
    assert [word["rank"] for word in wire.listen()] == ["2", "3"]
