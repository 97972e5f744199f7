"""Outside distributions with components that can be told to break their contracts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ompy.mca import discovery
from ompy.mca.loading import loaded_components
from ompy.mca.params import registry
from ompy.scaffold import distribution

# Frameworks that ompy_fuzz_faults has a component of.
FAULTY = ("pml", "mtl", "coll", "osc", "bml", "rte", "plm", "io", "hook")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory):
    """The transport's distribution, found by the kit and by the ranks as any that is installed."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).parent / "planted", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = site / "ompy_btl_planted-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy-btl-planted\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[ompy.btl]\nplanted = ompy_btl_planted.component\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("PYTHONPATH", str(site))
        patch.setattr(discovery, "installed_components", None)
        yield
    loaded_components.pop(("btl", "planted"), None)
    registry.entries.pop("btl_planted_fault", None)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory):
    """The components `faulty`, some over what `ompy new` writes, found as any that are installed."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(
        Path(__file__).parent / "fuzz" / "planted", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    written = tmp_path_factory.mktemp("written")
    for framework in ("pml", "mtl", "rte", "plm", "io"):
        package = distribution.write(framework, "planted", written) / "src" / f"ompy_{framework}_planted"
        shutil.copytree(package, site / package.name)
    metadata = site / "ompy_fuzz_faults-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy-fuzz-faults\nVersion: 1.0\n")
    points = [f"[ompy.{framework}.by_name]\nfaulty = ompy_fuzz_faults.{framework}\n" for framework in FAULTY]
    (metadata / "entry_points.txt").write_text("\n".join(points))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("PYTHONPATH", str(site))
        patch.setattr(discovery, "installed_components", None)
        yield
    for framework in FAULTY:
        loaded_components.pop((framework, "faulty"), None)
        registry.entries.pop(f"{framework}_faulty_fault", None)
