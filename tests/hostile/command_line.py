"""What a person, or a script that has gone wrong, may say to `ompyrun`: a job, or a line that says what is wrong."""

from __future__ import annotations

import os
import random
import resource
import tempfile
from pathlib import Path

from mutation import mutated

VALUES = (
    "", "0", "1", "2", "-1", "nan", "inf", "1e400", "9" * 30, "9" * 5000, "x", "=", ":", "a=b", "A*", "*", "?", "[", "a,b",
    ",", "core", "none", "share", "slot:PE=2", "ppr:2:node", "ppr", "ppr::", "slot:", "all", "localhost:2", "localhost:*",
    "elsewhere", "tag,merge", "dir=", "dir=/tmp/%r:nocopy", "file=a:b:c", "btl", "btl_sm_eager_limit", "self,sm", "^zmq",
    "/dev/null", "/", "\udcff", "é", "\x1b[2J", "%r%%%", "FILE", "FILE", "FILE", "true", "1k", "--", "-", "-n",
)  # fmt: skip
LINES = (
    b"localhost slots=2\n",
    b"rank 0=localhost slot=0\n",
    b"-n 2 true\n",
    b"btl = self\n",
    b"# x\n",
    b"'",
    b"-n 1 -x A=1 echo 'a b'\n",
)


class CommandLine:
    name = "command-line"

    def begin(self) -> None:
        from ompy.cli import command_line, ompyrun
        from ompy.mca.params import registry

        self.line, self.run, self.registry = command_line, ompyrun, registry
        self.folder = Path(tempfile.mkdtemp(prefix="ompy-hostile-"))
        self.environment = dict(os.environ)
        self.limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    def make(self, rng: random.Random) -> object:
        from ompy.cli.command_line import BY_NAME, LEFT_OUT

        names = sorted({*BY_NAME, *LEFT_OUT} - {"--report-state"})
        words = []
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            name = rng.choice(names)
            if rng.random() < 0.1:
                name = mutated(rng, name.encode()).decode(errors="surrogateescape")
            option = BY_NAME.get(name)
            values = [rng.choice(VALUES) for _ in (option.values if option else rng.choice(((), ("V",))))]
            if rng.random() < 0.1:
                values = [
                    mutated(rng, value.encode(errors="surrogateescape")).decode(errors="surrogateescape") for value in values
                ]
            words += [f"{name}={values[0]}", *values[1:]] if values and rng.random() < 0.2 else [name, *values]
            if rng.random() < 0.1:
                words += ["true", ":"]
        words += rng.choice(
            ([], ["true"], ["true", "-n", "2"], ["--", "true"], ["--"], ["true", ":"], ["true", ":", "-n", "1", "true"])
        )
        file = b"".join(rng.choice(LINES) for _ in range(rng.randrange(4)))
        return [word.replace("\0", "") for word in words], mutated(rng, file, LINES)

    def carry_out(self, given: object) -> str:
        words, data = given  # type: ignore[misc]
        (self.folder / "file").write_bytes(data)
        words = [str(self.folder / "file") if word == "FILE" else word for word in words]
        try:
            segments = self.line.parse(words)
            if path := self.line.whole(segments).last("app"):
                segments = self.run.read_programs(path[0], segments)
            job = self.run.job_of(segments)
            if not 1 <= job.size == sum(program.count for program in job.programs):
                return f"a job of {job.size} ranks"
            for rank in range(min(job.size, 3)):
                job.output.tag.of(0, rank, "stdout")
        except (self.line.UsageError, ValueError, OSError, RuntimeError) as error:
            return "" if str(error) else f"{type(error).__name__} without words"
        finally:
            os.environ.clear()
            os.environ.update(self.environment)
            self.registry.settings = None
            resource.setrlimit(resource.RLIMIT_NOFILE, self.limits)
        return ""

    def settle(self) -> None:
        pass

    def show(self, given: object) -> str:
        return repr(given)[:1500]
