"""Request progression interfaces with one fault each: the kit fails every one, and names the clause that it breaks.

An RPI is compiled, so the faults are changes to the source that `ompy new rpi` writes, all of them in one build; an environment
variable says which one takes effect.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from planted_table import check_clause, first_failure, some
from workshop import Workshop

from ompy.mca import discovery
from ompy.mca.loading import loaded_components
from ompy.scaffold import distribution
from ompy.testing.conformance import kit

VARIABLE = "OMPY_PLANTED_RPI"
# Name: the clause that it breaks, a line of the source, and what stands in its place; `FAULT` is the name of the one that acts.
FAULTS = {
    "newest receive first": (
        "posted",
        "        for request in self.posted:\n            if request.takes",
        '        for request in (list(reversed(self.posted)) if FAULT == "newest receive first" else self.posted):\n'
        "            if request.takes",
    ),
    "newest message first": (
        "order",
        "        for message in self.kept:\n            if wanted.takes",
        '        for message in (list(reversed(self.kept)) if FAULT == "newest message first" else self.kept):\n'
        "            if wanted.takes",
    ),
    "wildcards take the library's": (
        "match",
        "            if wanted.takes(&message.envelope):\n",
        '            if FAULT == "wildcards take the library\'s" and wanted.wanted_tag == -1 and wanted.world_source in (\n'
        "                    -1, message.envelope.source) and wanted.scope == message.envelope.scope:\n"
        "                return message\n"
        "            if wanted.takes(&message.envelope):\n",
    ),
    "scopes mix": (
        "separate",
        "        cdef Kept message\n        for message in",
        "        cdef Kept message\n"
        '        if FAULT == "scopes mix":\n'
        "            for message in self.kept:\n"
        "                message.envelope.scope = wanted.scope\n"
        "        for message in",
    ),
    "loses messages": (
        "delivery",
        "        cdef Incoming request\n        if message.envelope.kind == KIND",
        "        cdef Incoming request\n"
        '        if FAULT == "loses messages" and message.envelope.length == 500 and message.envelope.tag == 2:\n'
        "            return 0\n"
        "        if message.envelope.kind == KIND",
    ),
    "damages messages": (
        "delivery",
        "        if message.data:\n",
        '        if FAULT == "damages messages" and len(message.data) > 1000:\n'
        "            message.data[len(message.data) - 1] ^= 255\n"
        "        if message.data:\n",
    ),
    "says less": (
        "truncation",
        "        request.matched(&message.envelope)\n",
        '        if FAULT == "says less" and 0 < request.nbytes < <Py_ssize_t> message.envelope.length:\n'
        "            message.envelope.length = request.nbytes\n"
        "            del message.data[request.nbytes:]\n"
        "        request.matched(&message.envelope)\n",
    ),
    "tells the wish": (
        "status",
        "        request.matched(&message.envelope)\n",
        '        if FAULT == "tells the wish" and request.wanted_tag == -1:\n'
        "            message.envelope.tag = 0\n"
        "        request.matched(&message.envelope)\n",
    ),
    "probes tell more": (
        "probe",
        "        found[0] = message.envelope\n",
        '        found[0] = message.envelope\n        if FAULT == "probes tell more" and found[0].length > 400:\n'
        "            found[0].length += 1\n",
    ),
    "probes leave the message": (
        "mprobe",
        "        if message is not None:\n            self.kept.remove(message)\n",
        '        if message is not None and FAULT != "probes leave the message":\n            self.kept.remove(message)\n',
    ),
    "cancel refuses": (
        "cancel",
        "        if request not in self.posted:\n",
        '        if request not in self.posted or FAULT == "cancel refuses":\n',
    ),
    "acknowledgements are dropped": (
        "synchronous",
        "        if message.envelope.kind == KIND_ACKNOWLEDGEMENT:\n",
        '        if FAULT == "acknowledgements are dropped" and message.envelope.kind == KIND_ACKNOWLEDGEMENT:\n'
        "            return 0\n"
        "        if message.envelope.kind == KIND_ACKNOWLEDGEMENT:\n",
    ),
    "freeing takes what is posted": (
        "free",
        "        self.kept = [message for message in self.kept if message.envelope.scope != scope]\n",
        "        self.kept = [message for message in self.kept if message.envelope.scope != scope]\n"
        '        if FAULT == "freeing takes what is posted":\n'
        "            self.posted = []\n",
    ),
}
SAMPLE = 3
SILENCE = 12.0


@pytest.fixture(scope="module")
def planted_rpi(workshop: Workshop) -> Iterator[None]:
    """Written, broken in every way, built, and found as any that is installed."""
    folder = distribution.write("rpi", "planted", workshop.folder, cython=True)
    source = folder / "src" / "ompy_rpi_planted" / "module.pyx"
    text = source.read_text().replace(
        "import hmac\n", f'import hmac\nimport os\n\nFAULT = os.environ.get("{VARIABLE}", "")\n', 1
    )
    for name, (_, line, instead) in FAULTS.items():
        assert text.count(line) == 1, name
        text = text.replace(line, instead)
    source.write_text(text)
    workshop.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(workshop.site))
        patch.setenv("PYTHONPATH", str(workshop.site))
        patch.setattr(discovery, "installed_components", None)
        yield
    loaded_components.pop(("rpi", "planted"), None)


def tried(fault: str, ranks: int, seed: int) -> kit.Result | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, fault)
        return first_failure("rpi", ("planted",), ranks, seed, SILENCE)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("fault", some(FAULTS, SAMPLE))
def test_the_kit_names_the_broken_clause(planted_rpi, ompy_seed: int, fault: str, ranks: int) -> None:
    check_clause(tried(fault, ranks, ompy_seed), "rpi", fault, FAULTS[fault][0], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_interface_without_a_fault_passes(planted_rpi, ompy_seed: int, ranks: int) -> None:
    result = tried("", ranks, ompy_seed)
    assert result is None, result
