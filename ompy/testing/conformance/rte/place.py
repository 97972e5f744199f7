"""Who a rank is: its number, its job and its host, and that nobody else is taken for it."""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from pathlib import Path

from ompy.testing.conformance.check import Breach, Collection
from ompy.testing.conformance.rte.rank import RteRank

check = Collection()

LEAST_SECRET = 16


@check("identity", "open", "place")
def every_rank_is_there_once(rank: RteRank) -> None:
    """On its host too."""
    rte = rank.rte
    told = rank.meet((rte.rank, rte.size, rte.job, rte.secret, socket.gethostname(), rte.local_rank, rte.local_size))
    ranks, sizes, jobs, secrets, hosts, local_ranks, local_sizes = map(list, zip(*told, strict=True))
    count = rank.processes
    if not rank.launcher:
        if sizes != [1] * count or any(ranks):
            raise Breach("identity", f"{count} jobs of one have ranks {ranks} of {sizes}")
        if len(set(jobs)) < count or len(set(secrets)) < count:
            raise Breach("identity", f"{count} jobs of one have names {jobs} and {len(set(secrets))} secrets")
        if any(local_ranks) or local_sizes != [1] * count:
            raise Breach("place", f"in jobs of one `local_rank` is {local_ranks}, `local_size` {local_sizes}")
        return
    if sorted(ranks) != list(range(count)) or sizes != [count] * count:
        raise Breach("identity", f"the {count} ranks of a job are {ranks} of {sizes}")
    if len(set(jobs)) > 1 or not jobs[0]:
        raise Breach("identity", f"the ranks of one job call it {jobs}")
    if len(set(secrets)) > 1:
        raise Breach("identity", "the ranks of one job have different secrets")
    for host in set(hosts):
        here = [index for index in range(count) if hosts[index] == host]
        found = sorted(local_ranks[index] for index in here), {local_sizes[index] for index in here}
        if found != (list(range(len(here))), {len(here)}):
            raise Breach("place", f"the ranks of {host} have `local_rank` {found[0]} and `local_size` {found[1]}")


@check("secret")
def the_secret_is_not_where_others_read_it(rank: RteRank) -> None:
    """As it is, in hexadecimal, or as base64."""
    secret = rank.rte.secret
    if len(secret) < LEAST_SECRET:
        raise Breach("secret", f"the secret has {len(secret)} bytes")
    forms = secret, secret.hex().encode(), b64encode(secret).rstrip(b"=")
    for name in ("cmdline", "environ"):
        if any(form in Path("/proc/self", name).read_bytes() for form in forms):
            raise Breach("secret", f"the secret is in /proc/self/{name}")
    if any(form in os.environb[name] for name in os.environb for form in forms):
        raise Breach("secret", "the secret is in the environment that programs inherit")


@check("heirs")
def a_program_that_a_rank_starts_is_no_rank(rank: RteRank) -> None:
    """It has neither the rank's descriptor nor an environment that makes it one."""
    own = os.fstat(rank.rte.descriptor).st_ino if rank.rte.descriptor >= 0 else -1
    told = rank.elsewhere()
    if own in told["files"]:
        raise Breach("heirs", "a program that the rank starts has inherited `descriptor`")
    if rank.launcher and not told["reason"]:
        raise Breach("heirs", f"a program that the rank starts is taken for a rank of job {told['job']}")
    if told.get("job") == rank.rte.job:
        raise Breach("heirs", f"a program that the rank starts is taken for a rank of the rank's job {told['job']}")
    rank.meet()
