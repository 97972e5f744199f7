"""An outside distribution of components with one fault each, over the PML that `ompy new pml` writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ompy.mca import discovery
from ompy.mca.loading import loaded_components
from ompy.mca.params import registry
from ompy.scaffold import distribution


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory):
    """The components pml, coll and osc `faulty`, found by the runner's ranks as any that are installed."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(Path(__file__).parent / "planted", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    written = distribution.write("pml", "planted", tmp_path_factory.mktemp("written"))
    shutil.copytree(written / "src" / "ompy_pml_planted", site / "ompy_pml_planted")
    metadata = site / "ompy_fuzz_faults-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy-fuzz-faults\nVersion: 1.0\n")
    points = [f"[ompy.{framework}]\nfaulty = ompy_fuzz_faults.{framework}\n" for framework in ("pml", "coll", "osc")]
    (metadata / "entry_points.txt").write_text("\n".join(points))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        patch.setenv("PYTHONPATH", str(site))
        patch.setattr(discovery, "installed_components", None)
        yield
    for framework in ("pml", "coll", "osc"):
        loaded_components.pop((framework, "faulty"), None)
        registry.entries.pop(f"{framework}_faulty_fault", None)
