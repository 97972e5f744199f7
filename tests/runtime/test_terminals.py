"""Terminals as the launcher's input and output: other sessions', such as nobody reads, and such as go."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest
from launching import DEADLINE, OMPYRUN, python


def lead_session() -> None:
    """Standard input becomes the terminal of a session that survives it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_input_from_a_terminal_of_another_session_is_passed_on() -> None:
    keyboard, terminal = pty.openpty()
    job = subprocess.Popen([*OMPYRUN, "-n", "1", "cat"], stdin=terminal, stdout=subprocess.PIPE, start_new_session=True)
    os.close(terminal)
    os.write(keyboard, b"hello\n\x04")
    assert job.communicate(timeout=DEADLINE)[0] == b"hello\n"
    assert job.returncode == 0
    os.close(keyboard)


def test_terminal_that_goes_is_the_end_of_the_input() -> None:
    keyboard, terminal = pty.openpty()
    source = "import sys\nprint('up', flush=True)\nprint('read', repr(sys.stdin.read()))"
    job = subprocess.Popen(
        [*OMPYRUN, "-n", "1", *python(source)], stdin=terminal, stdout=subprocess.PIPE, preexec_fn=lead_session
    )
    os.close(terminal)
    assert job.stdout is not None
    assert job.stdout.readline() == b"up\n"
    os.close(keyboard)
    assert job.communicate(timeout=DEADLINE)[0] == b"read ''\n"
    assert job.returncode == 0


@pytest.mark.parametrize("program", [["yes"], ["sh", "-c", "yes | head -c 200000"]], ids=["running", "ended"])
def test_time_is_over_while_nobody_reads_the_terminal(program: list[str]) -> None:
    screen, terminal = pty.openpty()
    command = [*OMPYRUN, "--timeout", "1", "-n", "1", *program]
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True)
    try:
        assert job.wait(DEADLINE) == 124
        assert os.get_blocking(terminal)  # as the shell that shares it has it
    finally:
        job.kill()
        os.close(screen)
        os.close(terminal)


def test_job_whose_ranks_have_ended_is_interrupted_while_nobody_reads_the_terminal(tmp_path: Path) -> None:
    screen, terminal = pty.openpty()
    ended = tmp_path / "ended"
    command = [*OMPYRUN, "-n", "1", "sh", "-c", f"yes | head -c 200000; : > {ended}"]
    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, start_new_session=True)
    try:
        end = time.monotonic() + DEADLINE
        while not ended.exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert ended.exists()
        job.send_signal(signal.SIGINT)
        assert job.wait(DEADLINE) == 130
    finally:
        job.kill()
        os.close(screen)
        os.close(terminal)
