"""Matching lists: criteria, the three links, and lists that are badly made."""

from __future__ import annotations

import pytest
from ompy_puma.application import ALL_BITS, ANY, END
from ompy_puma.descriptor import READ
from puma_machine import GROUP, OWN, Machine, drops


def bodies(memories: list[bytearray]) -> list[bytes]:
    return [bytes(memory).rstrip(b"\0") for memory in memories]


def blocks(receiver, count: int, size: int = 4) -> tuple[list[bytearray], list[int]]:
    """Single blocks, and entries in front of them that take anything."""
    memories = [bytearray(size) for _ in range(count)]
    return memories, [receiver.entry(receiver.single(memory), mask=0) for memory in memories]


# -- criteria


def test_the_first_entry_whose_bits_are_equal_takes_the_message(machine, receiver):
    memories = [bytearray(4) for _ in range(3)]
    for bits, memory in zip((1, 2, 2), memories, strict=True):
        receiver.append(0, receiver.entry(receiver.single(memory), bits))
    machine.send(0, b"two", match_bits=2)
    assert bodies(memories) == [b"", b"two", b""]


@pytest.mark.parametrize("bit", [0, 31, 32, 63])
def test_only_bits_under_the_mask_count(machine, receiver, bit):
    memory = bytearray(8)
    receiver.append(0, receiver.entry(receiver.single(memory), 0, ALL_BITS ^ (1 << bit)))
    machine.send(0, b"x", match_bits=1 << bit)
    machine.send(0, b"y", match_bits=1 << (bit ^ 1))
    assert bodies([memory]) == [b"x"]
    assert drops(receiver) == ["NO_MATCH"]


def test_the_sources_rank_counts_unless_it_is_wild():
    machine = Machine(3)
    receiver = machine.processes[2]
    memories = [bytearray(4), bytearray(4)]
    receiver.append(0, receiver.entry(receiver.single(memories[0]), source_rank=1))
    receiver.append(0, receiver.entry(receiver.single(memories[1]), source_rank=ANY))
    machine.send(0, b"0", source=0, target=2)
    machine.send(0, b"1", source=1, target=2)
    assert bodies(memories) == [b"1", b"0"]


def test_the_sources_group_counts_unless_it_is_wild(machine, receiver):
    memories = [bytearray(4), bytearray(4)]
    receiver.append(0, receiver.entry(receiver.single(memories[0]), source_group=GROUP + 1))
    receiver.append(0, receiver.entry(receiver.single(memories[1]), source_group=GROUP))
    machine.send(0, b"x")
    assert bodies(memories) == [b"", b"x"]


def test_entries_can_be_put_in_front_and_taken_out(machine, receiver):
    memories, (first, second, third) = blocks(receiver, 3)
    receiver.append(0, first)
    receiver.append(0, second, before=first)
    receiver.append(0, third, before=first)
    machine.send(0, b"1")
    receiver.withdraw(second)
    machine.send(0, b"2")
    receiver.withdraw(third)
    machine.send(0, b"3")
    receiver.withdraw(first)
    machine.send(0, b"4")
    assert bodies(memories) == [b"3", b"1", b"2"]
    assert drops(receiver) == ["NO_MATCH"]


# -- links


def test_no_match_leads_to_the_next_entry(machine, receiver):
    memories, entries = blocks(receiver, 3)
    for entry in entries:
        receiver.append(0, entry)
    skipped = receiver.entry(receiver.single(bytearray(4)), 99)
    receiver.append(0, skipped, before=entries[0])
    receiver.link(skipped, no_match=entries[1])
    machine.send(0, b"x", match_bits=1)
    assert bodies(memories) == [b"", b"x", b""]


def test_too_long_leads_elsewhere_than_no_match(machine, receiver):
    memories, entries = blocks(receiver, 3, 8)
    small = receiver.entry(receiver.single(bytearray(2)), 5)
    for entry in (small, *entries):
        receiver.append(0, entry)
    receiver.link(small, no_match=entries[0], too_long=entries[1], invalid=entries[2])
    machine.send(0, b"long", match_bits=5)
    machine.send(0, b"no", match_bits=6)
    assert bodies(memories) == [b"no", b"long", b""]
    assert [event.refused for event in receiver.events] == [small, -1]


def test_full_leads_elsewhere_than_too_long(machine, receiver):
    memories, entries = blocks(receiver, 3, 8)
    one = receiver.entry(receiver.independent([bytearray(2)]), 5)
    for entry in (one, *entries):
        receiver.append(0, entry)
    receiver.link(one, no_match=entries[0], too_long=entries[1], invalid=entries[2])
    machine.send(0, b"ok", match_bits=5)
    machine.send(0, b"full", match_bits=5)
    assert bodies(memories) == [b"", b"", b"full"]


def test_an_invalid_descriptor_leads_where_a_full_one_does(machine, receiver):
    memories, entries = blocks(receiver, 2, 8)
    unset = receiver.entry(receiver.descriptor_count - 1, mask=0)  # a descriptor that nobody has set up
    for entry in (unset, *entries):
        receiver.append(0, entry)
    receiver.link(unset, no_match=entries[0], too_long=entries[0], invalid=entries[1])
    machine.send(0, b"x")
    assert bodies(memories) == [b"", b"x"]


@pytest.mark.parametrize(("link", "reason"), [("too_long", "TOO_LONG"), ("invalid", "FULL")])
def test_each_link_may_end_in_a_drop(machine, receiver, link, reason):
    memories, entries = blocks(receiver, 1, 8)
    one = receiver.entry(receiver.independent([bytearray(2)]), mask=0)
    for entry in (one, *entries):
        receiver.append(0, entry)
    receiver.link(one, **{link: END})
    machine.send(0, b"long" if link == "too_long" else b"ok")
    machine.send(0, b"also long" if link == "too_long" else b"full")
    assert bodies(memories) == [b""]
    assert set(drops(receiver)) == {reason}
    assert receiver.events[-1].entry == one


def test_links_may_lead_back_into_the_list(machine, receiver):
    memories, entries = blocks(receiver, 2, 8)
    small = receiver.entry(receiver.single(bytearray(2)), mask=0)
    for entry in (entries[0], small, entries[1]):
        receiver.append(0, entry)
    receiver.start_list(0, small)
    receiver.link(small, too_long=entries[0])
    machine.send(0, b"back")
    assert bodies(memories) == [b"back", b""]


def test_the_long_go_on_to_the_next_entry_unless_told_otherwise(machine, receiver):
    memories = [bytearray(size) for size in (1, 2, 4)]
    for memory in memories:
        receiver.append(0, receiver.entry(receiver.single(memory), mask=0))
    machine.send(0, b"abc")
    machine.send(0, b"de")
    assert bodies(memories) == [b"", b"de", b"abc"]


# -- badly made


def test_a_list_tied_into_a_ring_ends_in_a_drop(machine, receiver):
    entries = [receiver.entry(receiver.single(bytearray(4)), bits) for bits in (1, 2, 3)]
    for entry in entries:
        receiver.append(0, entry)
    receiver.link(entries[2], no_match=entries[0])
    machine.send(0, b"x", match_bits=9)
    assert drops(receiver) == ["BROKEN_LIST"]


def test_a_ring_of_other_links_ends_in_a_drop(machine, receiver):
    entries = [receiver.entry(receiver.single(bytearray(0)), mask=0) for _ in range(2)]
    for entry in entries:
        receiver.append(0, entry)
    receiver.link(entries[1], too_long=entries[0])
    machine.send(0, b"x")
    assert drops(receiver) == ["BROKEN_LIST"]


@pytest.mark.parametrize("index", [-3, 1 << 20, -(1 << 31), (1 << 31) - 1])
def test_an_index_outside_the_array_ends_in_a_drop(machine, receiver, index):
    entry = receiver.entry(receiver.single(bytearray(4)), 1)
    receiver.append(0, entry)
    receiver.link(entry, no_match=index)
    machine.send(0, b"x", match_bits=2)
    receiver.start_list(1, index)
    machine.send(1, b"x")
    assert drops(receiver) == ["BROKEN_LIST"] * 2


@pytest.mark.parametrize("index", [-1, 1 << 20])
def test_a_portal_whose_descriptor_does_not_exist_is_invalid(machine, receiver, index):
    receiver.attach(0, index)
    machine.send(0, b"x")
    assert drops(receiver) == ["INVALID"]


# -- portals


def test_a_portal_with_nothing_in_it_drops(machine, receiver):
    machine.send(0, b"x")
    receiver.attach(0, receiver.single(bytearray(4)))
    receiver.close_portal(0)
    machine.send(0, b"x")
    machine.send(receiver.portal_count, b"x")
    assert drops(receiver) == ["EMPTY_PORTAL", "EMPTY_PORTAL", "PORTAL"]


def test_portals_do_not_touch_each_other(machine, receiver):
    memories = [bytearray(4) for _ in range(3)]
    for portal, memory in enumerate(memories):
        receiver.attach(portal, receiver.single(memory))
    machine.send(1, b"one")
    assert bodies(memories) == [b"", b"one", b""]


def test_a_process_sends_to_itself_as_to_others(machine, sender):
    memory = bytearray(4)
    sender.attach(0, sender.single(memory))
    machine.send(0, b"me", target=0)
    assert bodies([memory]) == [b"me"]


# -- searching the heap and activating an entry is one step


def test_what_is_in_the_heap_is_found_and_the_entry_stays_out(machine, receiver, heap):
    store = receiver.dynamic(heap)
    catch_all = receiver.entry(store, mask=0)
    receiver.append(0, catch_all)
    for bits in (1, 2, 1):
        machine.send(0, b"%d" % bits, match_bits=bits)
    memory = bytearray(4)
    posted = receiver.entry(receiver.single(memory), 1)
    letter = receiver.search(store, 0, posted, catch_all)
    assert letter.body == b"1"
    letter.release()
    machine.send(0, b"new", match_bits=1)
    assert bodies([memory]) == [b""]
    assert [letter.body for letter in receiver.letters(store)] == [b"2", b"1", b"new"]


def test_what_is_not_in_the_heap_is_waited_for(machine, receiver, heap):
    store = receiver.dynamic(heap)
    catch_all = receiver.entry(store, mask=0)
    receiver.append(0, catch_all)
    machine.send(0, b"2", match_bits=2)
    memory = bytearray(4)
    posted = receiver.entry(receiver.single(memory), 1)
    assert receiver.search(store, 0, posted, catch_all) is None
    machine.send(0, b"here", match_bits=1)
    assert bodies([memory]) == [b"here"]


def test_no_message_slips_between_search_and_entry(heap):
    """Whether a message arrives before or after the step, it is found once."""
    for before in (False, True):
        machine = Machine()
        receiver = machine.processes[1]
        store = receiver.dynamic(heap)
        catch_all = receiver.entry(store, mask=0)
        receiver.append(0, catch_all)
        memory = bytearray(4)
        posted = receiver.entry(receiver.single(memory), 1)
        machine.processes[0].send(OWN, 1, 0, b"once", match_bits=1)
        if before:
            machine.run()
        letter = receiver.search(store, 0, posted, catch_all)
        machine.run()
        assert [letter is not None, memory == b"once"] == [before, not before]


# -- read portals behind lists


def test_a_list_may_lead_to_read_memory(machine, sender, receiver):
    inbox = bytearray(3)
    sender.attach(9, sender.single(inbox))
    for bits, memory in ((1, b"one"), (2, b"two")):
        receiver.append(0, receiver.entry(receiver.single(memory, READ), bits))
    machine.send(0, match_bits=2, answer=9, answer_length=3)
    assert inbox == b"two"
