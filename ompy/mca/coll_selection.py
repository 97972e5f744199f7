"""Which module serves each collective of a communicator, in each of its forms.

Components are asked for the first communicator of each kind.  Where every component says that its answer holds for the kind
(`Offer.again`, `Refusal.lasting`), the others of that kind are served alike (`CollPlan.keep`), until a parameter is set.

Ranks must decide alike, or a collective would meet another one on its peers.  The first communicator, the world, is decided
before the cards go out; its components stand on them, and are compared.  One that goes wrong then is left out for good, on all
ranks or with an error; one that goes wrong later, when the others may count on it, is an error.
"""

from __future__ import annotations

from ompy.mca.component import Component, Offer, Refusal
from ompy.mca.errors import ComponentError, suggestion
from ompy.mca.frameworks import FUNCTIONS, declare
from ompy.mca.hook import hooks
from ompy.mca.params import registry
from ompy.mca.selection import Broken, Candidate, candidates, query
from ompy.mca.verdicts import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ompy.core.communicator import Communicator
    from ompy.mca.coll import CollPlan, CollTable

    Claim = tuple[str, bool, int]

AUTO = "auto"

# The forms of a collective: how each is called, and the method of a CollModule that serves it.
FORMS = (("{}", "run"), ("i{}", "start"), ("{}_init", "init"))
TABLES = tuple(tuple(form.format(function) for function in FUNCTIONS) for form, _ in FORMS)
FUNCTION_OF = {form.format(function): function for form, _ in FORMS for function in FUNCTIONS}


# The components that serve the world, with their priorities; and those that went wrong when they were asked for it.
of_world: dict[str, int] | None = None
broken: set[str] = set()


def select_collectives(communicator: Communicator) -> CollTable:
    """As was decided for the kind, or by asking every component: for each function, in each of its forms, the highest priority.

    A component that offers `bcast` serves those of `Bcast`, `Ibcast` and `Bcast_init` whose method its module has;
    `ibcast` or `bcast_init` stands for that form alone.  Raises ComponentError when a form is left without a module.
    """
    from ompy.mca.coll import ready

    global of_world
    if (table := ready(communicator)) is not None:
        return table
    declare()
    found, by_name = candidates("coll")
    answers = [(it, *query(it, by_name, communicator)) for it in found if it.name not in broken]
    offers = [Candidate(component, answer) for _, component, answer in answers if component and isinstance(answer, Offer)]
    failed = {it.name: answer.reason for it, _, answer in answers if isinstance(answer, Broken)}
    if of_world is None:
        of_world = {candidate.component.name: candidate.offer.priority for candidate in offers}
        broken.update(failed)
    else:
        for name, reason in failed.items():
            raise ComponentError(
                f"coll component {name} can't be asked for another communicator, where other ranks may count on it: {reason}; "
                f"`--mca coll ^{name}` does without it"
            )
    plan = plan_of(offers, [component for _, component, answer in answers if component and not isinstance(answer, Broken)])
    makers = [candidate.offer.again for candidate in offers if candidate.offer.again is not None]
    lasting = all(answer.lasting for _, _, answer in answers if isinstance(answer, Refusal))
    # Whoever watches queries, or wants to be told of them, sees each.
    watched = hooks.manager is not None or registry.value("coll_base_verbose") > 0
    # Of those that span jobs, each has hosts of its own.
    if len(makers) == len(offers) and lasting and not watched and not communicator.spans_jobs:
        plan.keep(communicator, makers, dict(record.frameworks["coll"]))
    return plan.table([candidate.offer.modules[0] for candidate in offers])


def on_card() -> bytes:
    """Who serves the world here, for the other ranks to compare: "basic=10 sm=40"."""
    return " ".join(f"{name}={priority}" for name, priority in (of_world or {}).items()).encode()


def compare(card: bytes, other: int, rank: int) -> None:
    """Raises ComponentError when rank `other`, whose card says so, has the world served otherwise than this rank."""
    theirs = dict(field.partition("=")[::2] for field in card.decode("utf-8", "replace").split())
    ours = {name: str(priority) for name, priority in (of_world or {}).items()}
    for name in [*ours, *theirs]:
        if ours.get(name) == theirs.get(name):
            continue
        if name not in ours:
            reasons = [verdict.reason for verdict in record.of("coll") if verdict.component == name]
            problem = f"is left out on rank {rank}, and serves on rank {other}: {reasons[0] if reasons else 'not installed'}"
        elif name not in theirs:
            problem = f"is left out on rank {other}, and serves on rank {rank}: `--mca coll_base_verbose 1` has the reason"
        else:
            problem = f"has priority {ours[name]} on rank {rank} and {theirs[name]} on rank {other}"
        remedy = f"Collectives need the same on every rank: `--mca coll ^{name}` does without it"
        raise ComponentError(f"coll component {name} {problem}. {remedy}")


def plan_of(offers: list[Candidate], asked: list[Component]) -> CollPlan:
    """Which of the offers serves each form; those who were `asked` and refused may have a named algorithm all the same."""
    from ompy.mca.coll import CollPlan

    check_algorithms(asked)
    claims = [claim for number in range(len(offers)) for claim in claims_of(offers, number)]
    # The last to claim a form serves it.
    claims.sort(key=lambda claim: (claim[1], offers[claim[2]].offer.priority))
    chosen: dict[str, int] = {}
    before = []
    for spelling, _, number in claims:
        if spelling in chosen and spelling in TABLES[0]:
            before.append((number, FUNCTIONS.index(spelling), chosen[spelling]))
        chosen[spelling] = number
    if missing := [spelling for spelling in FUNCTION_OF if spelling not in chosen]:
        raise ComponentError(f"no coll component serves {', '.join(missing)}:{record.table('coll')}")
    told = []
    for spelling, named_algorithm, number in reversed(claims):
        winner, name = offers[chosen[spelling]].component.name, offers[number].component.name
        reason = f"{winner} has the highest priority"
        if registry.value(f"coll_{FUNCTION_OF[spelling]}_algorithm") != AUTO and (named_algorithm or name != winner):
            reason = f"{winner} has the algorithm that coll_{FUNCTION_OF[spelling]}_algorithm names"
        told.append((spelling, name, offers[number].offer.priority, winner == name, reason))
    return CollPlan([[chosen[spelling] for spelling in table] for table in TABLES], before, told)


def claims_of(offers: list[Candidate], number: int) -> list[Claim]:
    """What one offer would serve: (form, whether a parameter names an algorithm of the component's, which offer)."""
    from ompy.mca.coll import CollModule

    candidate = offers[number]
    name, offer = candidate.component.name, candidate.offer
    module = offer.modules[0]
    able = [form for form, method in FORMS if getattr(type(module), method) is not getattr(CollModule, method)]
    functions = FUNCTIONS if offer.functions is None else offer.functions
    claims = []
    for function in functions:
        if function not in FUNCTION_OF:
            hint = suggestion(function, list(FUNCTIONS))
            raise ComponentError(f"coll component {name} offers {function!r}, which is no collective.{hint}")
        spellings = [form.format(function) for form in able] if function in FUNCTIONS else [function]
        claims += [(spelling, has_algorithm(candidate, FUNCTION_OF[spelling]), number) for spelling in spellings]
    record.add("coll", name, True, offer.priority, f"serves {len(functions)} functions")
    return claims


def algorithms_of(component: Component, function: str) -> tuple[str, ...]:
    """Names of a coll component's algorithms of a function, as its declaration has them."""
    declared = component.capabilities.get("algorithms", {})
    names: tuple[str, ...] = declared.get(function, ()) if isinstance(declared, dict) else ()
    return names


def has_algorithm(candidate: Candidate, function: str) -> bool:
    """Whether `coll_<function>_algorithm` names one of the component's."""
    return registry.value(f"coll_{function}_algorithm") in algorithms_of(candidate.component, function)


def check_algorithms(asked: list[Component]) -> None:
    """Raises ComponentError for an algorithm that no component has, with the known ones."""
    for function in FUNCTIONS:
        entry = registry.lookup(f"coll_{function}_algorithm")
        known = [name for component in asked for name in algorithms_of(component, function)]
        if entry.value == AUTO or entry.value in known:
            continue
        listing = ", ".join(dict.fromkeys(known)) or "none"
        hint = suggestion(entry.value, known)
        raise ComponentError(
            f"parameter coll_{function}_algorithm ({entry.source}): no component has an algorithm {entry.value!r} of "
            f"{function}; known: {AUTO}, {listing}.{hint}"
        )


def forget() -> None:
    """Before another bring-up in the same process: nothing is decided."""
    from ompy.mca.coll import forget_plans

    global of_world
    forget_plans()
    of_world = None
    broken.clear()
