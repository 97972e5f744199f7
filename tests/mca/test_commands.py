"""Commands of outside distributions stand beside those of `ompy`."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from outside import Outside

SOURCE = """
import click

@click.command("{name}")
def command():
    "Says its name."
    click.echo("this is {name}")
"""


@pytest.fixture
def ompy(run, outside: Outside):
    points = {"coo": "outside_commands.coo", "loft.feed": "outside_commands.feed", "loft.clean": "outside_commands.clean"}
    sources = {f"outside_commands.{name}": SOURCE.format(name=name) for name in ("coo", "feed")}
    outside.install("outside-commands", {"ompy.command": points}, sources | {"outside_commands.clean": "raise SystemError"})
    return lambda *arguments: run("-c", "from ompy.cli.ompy import main; main()", *arguments)


def test_an_installed_command_runs(ompy) -> None:
    assert ompy("coo").stdout == "this is coo\n"


def test_a_dot_makes_a_group_of_which_only_what_is_asked_for_is_imported(ompy) -> None:
    assert ompy("loft", "feed").stdout == "this is feed\n"
    assert ompy("loft", "clean").returncode == 1


def test_help_lists_installed_commands_beside_its_own(ompy) -> None:
    listing = ompy("coo", "--help").stdout
    assert "Says its name." in listing
    usage = ompy("cooo").stderr
    assert "coo" in usage
    assert "explain" in usage
    assert "loft" in usage


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_can_be_asked_for(ompy, option: str) -> None:
    assert ompy(option).stdout == f"ompy {version('ompy')}\n"
