"""Datatypes sent to another process: what is rebuilt lays data out as the original does."""

import pickle
import random
import subprocess
import sys

import pytest

from ompy.core.convertor import Convertor
from ompy.core.flattening import flatten, rebuild
from ompy.core.memory import address_of
from ompy.core.typemap import Typemap, create_struct, predefined

SEED = 97
LAYOUT = ("size", "extent", "lower_bound", "true_extent", "true_lower_bound", "contiguous", "basic", "alignment", "bounded")


def random_type(dice: random.Random, depth: int) -> Typemap:
    if depth == 0:
        return predefined(dice.randrange(8, 40))
    inner = random_type(dice, depth - 1)
    kind = dice.randrange(5)
    if kind == 0:
        return inner.create_vector(dice.randrange(1, 4), dice.randrange(1, 3), dice.randrange(3, 5))
    if kind == 1:
        return inner.create_indexed([1, 2, 1], [0, 3, 7])
    if kind == 2:
        return inner.create_subarray([4, 5], [2, 3], [1, 1], bool(dice.randrange(2)))
    if kind == 3:
        return inner.create_resized(0, inner.extent + dice.randrange(64))
    other = random_type(dice, depth - 1)
    return create_struct([1, 2], [0, inner.true_lower_bound + inner.true_extent + 16], [inner, other])


def packed(typemap: Typemap, memory: bytearray) -> bytes:
    convertor = Convertor()
    convertor.aim(address_of(memory), 2, typemap)
    return convertor.pack_bytes(2 * typemap.size)


@pytest.mark.parametrize("number", range(60))
def test_the_rebuilt_type_packs_the_same_bytes(number):
    dice = random.Random(SEED + number)
    typemap = random_type(dice, dice.randrange(4))
    # By way of pickle: not the object that `rebuild` may remember.
    made = rebuild(pickle.loads(pickle.dumps(flatten(typemap))))
    assert made is not typemap
    assert [getattr(made, name) for name in LAYOUT] == [getattr(typemap, name) for name in LAYOUT]
    assert made.signature == typemap.signature
    memory = bytearray(dice.randbytes(2 * (abs(typemap.extent) + typemap.true_extent) + 64))
    assert packed(made, memory) == packed(typemap, memory), f"seed {SEED + number}"


def test_another_process_can_rebuild_it():
    typemap = predefined(19).create_vector(3, 1, 4)
    program = (
        "import sys; from ompy.core.flattening import rebuild;"
        "made = rebuild(sys.stdin.buffer.read()); print(made.size, made.extent, made.signature)"
    )
    shown = subprocess.run([sys.executable, "-c", program], input=flatten(typemap), capture_output=True, check=True).stdout
    assert shown.decode().strip() == f"{typemap.size} {typemap.extent} {typemap.signature}"


def test_many_types_do_not_pile_up():
    for count in range(1, 1000):
        typemap = predefined(19).create_vector(count, 1, 2)
        assert rebuild(flatten(typemap)).size == typemap.size
