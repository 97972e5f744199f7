"""Components of the `hook` framework: loaded when a setting speaks of them, they see every query."""

from __future__ import annotations

from outside import Outside

WATCHER = """
    import pluggy
    from ompy.mca.component import Component, Parameter

    COMPONENT = Component(framework="hook", name="{name}", version="1.0", interface={interface}, summary="looks on",
                          parameters=(Parameter("loud", bool, False, help="say more"),))
    hookimpl = pluggy.HookimplMarker("ompy")

    @hookimpl
    def ompy_component():
        return COMPONENT

    @hookimpl(wrapper=True)
    def ompy_query(context):
        answer = yield
        print("{name} saw", context.component.name, "answer", type(answer).__name__)
        return answer
"""
SELECT = """
import sys
from ompy.core.errors import MPIError
from ompy.mca import selection
try:
    selection.select("btl")
except MPIError as error:
    print("error", error)
print("imported", sorted(name for name in sys.modules if name.startswith(("watch", "pluggy"))))
"""


def install(outside: Outside, name: str, interface: int = 1) -> None:
    source = WATCHER.format(name=name, interface=interface)
    outside.install(f"watch-{name}", {"ompy.hook": {name: f"watch_{name}"}}, {f"watch_{name}": source})


def test_a_watcher_that_is_named_sees_every_query_and_changes_none(outside: Outside, run) -> None:
    install(outside, "post")
    outside.component("pigeon", 'return Refusal("no pigeon is awake")')
    output = run("-c", SELECT, OMPY_MCA_hook="post").stdout
    assert "post saw pigeon answer Refusal" in output
    assert "post saw self answer Offer" in output


def test_a_watcher_is_loaded_when_one_of_its_parameters_is_set(outside: Outside, run) -> None:
    install(outside, "post")
    assert "post saw self" in run("-c", SELECT, OMPY_MCA_hook_post_loud="1").stdout


def test_watchers_wrap_one_another(outside: Outside, run) -> None:
    install(outside, "post")
    install(outside, "gate")
    output = run("-c", SELECT, OMPY_MCA_hook="post,gate").stdout
    assert "post saw self" in output
    assert "gate saw self" in output


def test_a_watcher_that_nobody_speaks_of_is_not_imported(outside: Outside, run) -> None:
    install(outside, "post")
    assert run("-c", SELECT).stdout == "imported []\n"


def test_a_watcher_that_is_excluded_is_not_loaded(outside: Outside, run) -> None:
    install(outside, "post")
    assert "post saw" not in run("-c", SELECT, OMPY_MCA_hook="^post", OMPY_MCA_hook_post_loud="1").stdout


def test_a_watcher_of_another_interface_is_an_error(outside: Outside, run) -> None:
    install(outside, "post", interface=99)
    output = run("-c", SELECT, OMPY_MCA_hook="post").stdout
    assert "error hook component post of watch-post 1.0 was built for interface 99" in output
