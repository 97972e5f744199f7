"""What btl/sm offers, and what it refuses."""

import pytest
from ompy_btl_sm.component import COMPONENT, ompy_query, usual_ring_size

from ompy.core import progress, reach
from ompy.mca.btl import GET, PUT
from ompy.mca.component import Context, Offer, Refusal
from ompy.mca.errors import ParameterError
from ompy.mca.params import Parameter, registry
from ompy.mca.rte import Rte


class Member(Rte):
    job = "test"

    def __init__(self, local_size):
        self.local_size = local_size


@pytest.fixture
def query(monkeypatch):
    """Asks the component, with some parameters set, as one of so many ranks."""
    offers = []
    registry.register("btl", "base", Parameter("verbose", int, 0, range=(-1, 100), help="as the framework registers it"))
    for parameter in COMPONENT.parameters:
        entry = registry.register("btl", "sm", parameter)
        # An earlier test may have registered it, with what the environment said then.
        monkeypatch.setattr(entry, "value", parameter.default)
        monkeypatch.setattr(entry, "source", "default")

    def ask(local_size=2, **settings):
        for name, value in settings.items():
            entry = registry.lookup(f"btl_sm_{name}")
            monkeypatch.setattr(entry, "value", value)
            monkeypatch.setattr(entry, "source", "the test")
        answer = ompy_query(Context(COMPONENT, Member(local_size)))
        if isinstance(answer, Offer):
            offers.append(answer)
        return answer

    # Entries have slots, which monkeypatch restores like attributes.
    yield ask
    for offer in offers:
        offer.modules[0].finalize()
    progress.shutdown()


def test_rings_of_crowded_hosts_are_small_and_limits_follow(query):
    assert [usual_ring_size(ranks) for ranks in (1, 2, 16, 17, 64, 5000)] == [262144, 262144, 262144, 131072, 65536, 32768]
    btl = query(local_size=64).modules[0]
    assert btl.ring_size == 65536
    assert btl.eager_limit == btl.max_send_size == 32768


def test_limit_that_no_ring_can_hold_is_refused(query):
    with pytest.raises(ParameterError, match=r"btl_sm_eager_limit: 1048576 bytes.*btl_sm_ring_size"):
        query(eager_limit=1 << 20)
    assert isinstance(query(eager_limit=1 << 20, ring_size=4 << 20), Offer)


def test_single_copy_is_used_when_asked_for_or_when_it_pays(query, monkeypatch):
    monkeypatch.setattr(reach, "pays", lambda crowded: True)
    assert query(single_copy="auto", shared_heap="none").modules[0].flags & (PUT | GET) == PUT | GET
    monkeypatch.setattr(reach, "pays", lambda crowded: False)
    assert not query(single_copy="auto").modules[0].flags & (PUT | GET)
    assert query(single_copy="cma").modules[0].flags & (PUT | GET) == PUT | GET
    assert not query(single_copy="none").modules[0].flags & (PUT | GET)


@pytest.mark.parametrize("crowded", [False, True])
def test_where_ranks_outnumber_cores_the_kernel_may_take_longer_and_copies_nothing_that_can_go_eagerly(
    query, monkeypatch, crowded
):
    asked = []
    monkeypatch.setattr(Member, "is_crowded", crowded)
    monkeypatch.setattr(reach, "pays", lambda crowded: asked.append(crowded) or True)
    btl = query(single_copy="auto").modules[0]
    assert asked == [crowded]
    assert (btl.min_rdma_pipeline_size > btl.eager_limit) == crowded
    assert query(min_rdma_pipeline_size=5000).modules[0].min_rdma_pipeline_size == 5000


def test_memory_of_the_shared_heap_is_exposed_where_other_memory_is_not(query):
    from ompy.core.heap import open_heap

    btl = query(single_copy="none", shared_heap="auto").modules[0]
    assert btl.flags & (PUT | GET) == GET
    _, begin, size = open_heap()
    assert btl.exposes(None, begin, size)
    assert not btl.exposes(None, begin + 1, size)
    assert not btl.exposes(None, begin - 1, 1)
    assert query(single_copy="cma").modules[0].exposes(None, begin - 1, 1)
    assert not query(single_copy="none", shared_heap="none").modules[0].flags & GET


@pytest.mark.parametrize("choice", ["auto", "cma"])
def test_where_the_kernel_refuses_a_line_says_so(query, monkeypatch, capfd, choice):
    monkeypatch.setattr(reach, "refusal", lambda: "process_vm_readv: Operation not permitted")
    assert not query(single_copy=choice).modules[0].flags & (PUT | GET)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "Operation not permitted" in lines[0]
    assert "ring" in lines[0]


def test_want_of_memory_is_a_reason(query, monkeypatch):
    import resource

    # Nothing larger than a page: neither memfd nor file can be reserved.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        answer = query(backing="file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(answer, Refusal)
    assert "/dev/shm has no room" in answer.reason
    assert "memfd" in answer.reason


def test_a_verbose_run_says_how_large_messages_will_go(query, monkeypatch, capfd):
    monkeypatch.setattr(registry.lookup("btl_base_verbose"), "value", 1)
    query(single_copy="none", shared_heap="auto", joint_copy=131072)
    told = capfd.readouterr().err
    assert "through the ring" in told
    assert "from the shared heap once" in told
    assert "131072" in told
    query(single_copy="cma", shared_heap="none", joint_copy=0)
    told = capfd.readouterr().err
    assert "by the kernel" in told
    assert "no shared heap" in told
    assert "alone" in told
