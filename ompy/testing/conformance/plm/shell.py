"""`python -m ompy.testing.conformance.plm.shell HOST LINE`: what ssh is called as, with this machine for every host.

LINE goes to a shell with the environment of a login, in the home folder.  NOWHERE is the one host that can't be reached.
"""

from __future__ import annotations

import os
import pwd
import sys
from typing import NoReturn

NOWHERE = "nowhere.invalid"
UNREACHABLE = 255  # ssh's status for what is its own failure
SHELL = "/bin/sh"


def main() -> NoReturn:
    """Entry point."""
    host, line = sys.argv[1:]
    if host == NOWHERE:
        print(f"Could not resolve hostname {host}", file=sys.stderr)
        sys.exit(UNREACHABLE)
    user = pwd.getpwuid(os.getuid())
    os.chdir(user.pw_dir)
    environment = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": SHELL, "PATH": os.defpath}
    os.execve(SHELL, ["sh", "-c", line], environment)


if __name__ == "__main__":
    main()
