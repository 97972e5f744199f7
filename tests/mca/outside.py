"""Outside distributions: made in a folder of their own, found through PYTHONPATH like anybody's."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent


class Outside:
    """A folder of installed distributions that are not the project's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self, distribution: str, groups: dict[str, dict[str, str]], modules: dict[str, str], version: str = "1.0"
    ) -> None:
        """Lay down what an installer would: packages, and metadata with entry points."""
        for name, source in modules.items():
            path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            for parent in path.relative_to(self.folder).parents:
                if parent.name:
                    (self.folder / parent / "__init__.py").touch()
            path.write_text(dedent(source))
        metadata = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        sections = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
        (metadata / "entry_points.txt").write_text("\n".join(sections))

    def component(
        self,
        name: str,
        query: str = 'return Refusal("says no")',
        interface: int | str = 1,
        top: str = "",
        capabilities: dict[str, object] | None = None,
        group: str = "ompy.btl",
    ) -> None:
        """A distribution with one btl component; `top` runs when its module is imported."""
        source = f"""
from ompy.mca.component import Component, Context, Offer, Parameter, Refusal, hookimpl
{top}
COMPONENT = Component(framework="btl", name="{name}", version="2.5", interface={interface}, summary="from outside",
                      parameters=(Parameter("depth", int, 3, level=2, help="how deep"),), capabilities={capabilities!r})

@hookimpl
def ompy_component():
    return COMPONENT

@hookimpl
def ompy_query(context):
    {query}
"""
        self.install(f"outside-{name}", {group: {name: f"outside_{name}.component"}}, {f"outside_{name}.component": source})
