"""Fetch one file of a distribution as pip would, from where it is configured to, without preparing its metadata.

    python -m ompy.testing.suite.fetch FORM REQUIREMENT FOLDER        FORM: --no-binary or --only-binary

`pip download` builds a source distribution's metadata before it hands over the file, which for mpi4py takes minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._vendor.packaging.requirements import Requirement


def fetch(form: str, requirement: str, folder: Path) -> None:
    """Write the file into the folder, its hash compared with the index's.  Exits with pip's words on failure."""
    wanted = Requirement(requirement)
    command: Any = create_command("download")
    options, _ = command.parse_args([form, wanted.name, "--quiet", "--disable-pip-version-check", requirement])
    with command.main_context():
        session = command.get_default_session(options)
        found = command._build_package_finder(options, session).find_best_candidate(wanted.name, wanted.specifier)
        if found.best_candidate is None:
            sys.exit(f"no index that pip is configured to use has {requirement} ({form})")
        link = found.best_candidate.link
        answer = session.get(link.url_without_fragment)
        answer.raise_for_status()
        file = folder / link.filename
        file.write_bytes(answer.content)
        link.as_hashes().check_against_path(str(file))


if __name__ == "__main__":
    fetch(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
