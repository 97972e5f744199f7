"""The process control thread: launching, names, granting."""

from __future__ import annotations

import pytest
from ompy_puma.application import Application
from ompy_puma.capability import GroupCapability
from ompy_puma.kernel import QKernel
from ompy_puma.loop_wire import Network
from ompy_puma.pct import OWN_GROUP, ProcessControlThread, launch
from ompy_puma.transmission import SendVerdict

from ompy.core.errors import MPIError


class Nodes:
    """Nodes with a kernel and a PCT each."""

    def __init__(self, count: int) -> None:
        self.network = Network()
        kernels = [QKernel(node, self.network.wire(node), engine=False) for node in range(count)]
        self.pcts = [ProcessControlThread(kernel, range(count)) for kernel in kernels]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes(4)


def test_a_launch_lets_every_process_send_to_every_other(nodes):
    group = launch(nodes.pcts, 7, [1, 2, 3])
    for process in group:
        process.attach(0, process.independent([bytearray(1) for _ in range(3)]))
    for process in group:
        for rank in range(3):
            assert process.send(OWN_GROUP, rank, 0, b"x") == SendVerdict.SENT
    nodes.network.run()
    assert [sorted(event.message.source_rank for event in process.events) for process in group] == [[0, 1, 2]] * 3


def test_another_group_is_out_of_reach_until_it_is_joined(nodes):
    first = launch(nodes.pcts, 7, [0, 1], "simulation")
    second = launch(nodes.pcts, 8, [2, 3])
    first[1].attach(0, first[1].single(bytearray(4)))
    errand = nodes.pcts[2].join(second[0], "simulation")
    assert not errand.done
    nodes.network.run()
    assert second[0].send(errand.result(), 1, 0, b"in") == SendVerdict.SENT
    nodes.network.run()
    assert first[1].events[-1].message.source_group == 8
    # Neither its neighbour nor the other side has gained anything.
    assert second[1].send(errand.result(), 1, 0, b"in") == SendVerdict.REFUSED
    assert first[0].send(1, 0, 0, b"out") == SendVerdict.REFUSED


def test_a_server_says_who_may_send_and_to_which_portal(nodes):
    [server] = launch(nodes.pcts, 7, [0])
    clients = launch(nodes.pcts, 8, [1, 2])
    portals = {b"alice": 5, b"bob": 6}
    nodes.pcts[0].name_server("files", server, lambda asker: portals.get(asker.credentials))
    for portal in (5, 6):
        server.attach(portal, server.dynamic(bytearray(1024)))
    alice = nodes.pcts[1].connect(clients[0], "files", b"alice")
    mallory = nodes.pcts[2].connect(clients[1], "files", b"mallory")
    nodes.network.run()
    clients[0].send_server(alice.result(), b"hello")
    nodes.network.run()
    assert [event.portal for event in server.events] == [5]
    with pytest.raises(MPIError, match="refused rank 1 of group 8"):
        mallory.result()


def test_a_server_on_the_same_node_is_found_without_asking_others(nodes):
    [server] = launch(nodes.pcts, 7, [1])
    [client] = launch(nodes.pcts, 8, [1], context=2)
    nodes.pcts[1].name_server("near", server, lambda asker: 3)
    errand = nodes.pcts[1].connect(client, "near")
    assert errand.done
    assert nodes.network.packets() == []


def test_a_name_that_nobody_has_is_an_error_that_says_so(nodes):
    [client] = launch(nodes.pcts, 8, [1])
    errand = nodes.pcts[1].connect(client, "nobody")
    with pytest.raises(MPIError, match="no answer about 'nobody' yet"):
        errand.result()
    nodes.network.run()
    with pytest.raises(MPIError, match="no node has anything named 'nobody'"):
        errand.result()


def test_a_node_holds_one_process_a_context(nodes):
    launch(nodes.pcts, 7, [0])
    with pytest.raises(MPIError, match="context 1 of node 0 is in use"):
        launch(nodes.pcts, 8, [0])
    launch(nodes.pcts, 8, [0], context=2)


def test_a_process_is_loaded_on_its_own_node(nodes):
    with pytest.raises(MPIError, match="rank 0 of group 7 belongs on node 0, not 3"):
        nodes.pcts[3].load(Application(7, 0), GroupCapability(7, [(0, 1)]))
