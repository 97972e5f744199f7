"""What brings a job up and watches it, with a fault each: the kit fails each, and names the clause that it breaks."""

from __future__ import annotations

import pytest
from planted_table import check_clause, first_failure, some

from ompy.testing.conformance import kit

# By framework, and class of ompy_fuzz_faults or name there.
FAULTS = {
    "rte": {
        "TwoAreRank0": "identity",
        "EveryJobIsCalledTheSame": "identity",
        "ASecretForAllJobs": "identity",
        "LocalRankStaysZero": "place",
        "SecretInTheEnvironment": "secret",
        "ShortSecret": "secret",
        "CutsLongValues": "publish",
        "EmptyIsNothing": "publish",
        "TextAlone": "publish",
        "MissingIsEmpty": "missing",
        "NegativeRanksCountFromTheEnd": "missing",
        "FenceWaitsLater": "fence",
        "FenceForgets": "again",
        "EngineStops": "progress",
        "LeavesWithoutAWord": "finalize",
        "StaysConnected": "finalize",
        "AbortsAlone": "abort",
        "AbortsWith1": "abort",
        "AbortForgetsTheMessage": "abort",
        "ListenWaits": "listen",
        "ListenInvents": "listen",
        "HearsNoEnd": "orphans",
        "Outlives": "orphans",
        "ChildStaysConnected": "fork",
        "ChildSaysGoodbye": "fork",
        "HandsItsSocketOn": "heirs",
        "HandsItsVariableOn": "heirs",
        "Talks": "quiet",
    },
    "plm": {
        "RefusesWithoutReason": "query",
        "OffersTwo": "query",
        "OneForAllLaunchers": "query",
        "ForgetsAHost": "agents",
        "StartsTwice": "agents",
        "EachSpeaksForAll": "agents",
        "AnswersWithWords": "agents",
        "SetsVariables": "launcher",
        "Moves": "launcher",
        "StartsAlready": "launcher",
        "KeepsAFileOpen": "launcher",
        "QuotesNothing": "command",
        "SplitsAtBlanks": "command",
        "LosesEmptyWords": "command",
        "StartsProxiesTwice": "command",
        "OneNameForAll": "name",
        "NameOfNoVariable": "name",
        "OneAfterTheOther": "together",
        "NoInput": "input",
        "CutsLongInput": "input",
        "TextAlone": "input",
        "InputHasNoEnd": "input",
        "SecretInTheEnvironment": "secret",
        "SecretOnACommandLine": "secret",
        "SecretInTheOutput": "secret",
        "SecretInAFile": "secret",
        "NoOutput": "output",
        "NoErrors": "output",
        "OutputAtTheEnd": "output",
        "CutsLongLines": "output",
        "Chats": "output",
        "NowhereIsWell": "unreachable",
        "NowhereIsPassedOver": "unreachable",
        "TriesNowhereForEver": "unreachable",
        "NoProgramIsWell": "unreachable",
        "AlwaysWell": "status",
        "NeverWell": "status",
        "KilledIsWell": "status",
        "StaysOn": "end",
        "LeavesAProcess": "left",
        "LeavesAFile": "left",
        "Talks": "quiet",
    },
    "bml": {
        "NoEagerRoute": "routes",
        "SendsOverReaders": "routes",
        "AnothersEndpoint": "routes",
        "EachCarriesAll": "shares",
        "VerdictsOfTheChosen": "verdicts",
        "VerdictsWithoutReasons": "verdicts",
        "UnreachableWithoutReasons": "unreachable",
        "UnreachableIsEmpty": "unreachable",
        "DropsNothing": "drop",
        "DropsFromOneList": "drop",
        "DropsTheLast": "drop",
        "GivesNothingBack": "return",
        "GivesBackTwice": "return",
        "RemembersRoutes": "return",
        "WrapsTheFirst": "wrap",
        "RegistersWithTheBest": "delivery",
        "ErrorsOfTheBest": "register",
        "ClosesTheFirst": "end",
    },
    "hook": {
        "SaysNothing": "answers",
        "AnswersWithTheModule": "answers",
        "OffersItsOwnWrapper": "answers",
        "RefusesWithoutReason": "answers",
        "ErrorsAreRefusals": "errors",
        "ErrorsAreRenamed": "errors",
        "IgnoresTheKeyboard": "errors",
        "NotNested": "nested",
        "KeepsAnswers": "lifetime",
        "Raises": "initialized",
        "MeetsOnOneRank": "initialized",
        "LeavesAMessage": "messages",
        "TakesASignal": "process",
        "TakesTheExceptHook": "process",
        "Moves": "process",
        "SetsVariables": "process",
        "TakesTheOutput": "process",
        "PrintsQueries": "quiet",
        "HoldsTheEnd": "end",
        "ChangesTheStatus": "end",
    },
}
SAMPLE = 2
SILENCE = 12.0


def tried(framework: str, fault: str, ranks: int, seed: int) -> kit.Result | None:
    return first_failure(framework, ("faulty",), ranks, seed, SILENCE, ((f"{framework}_faulty_fault", fault),))


def rows() -> list[tuple[str, str]]:
    return [(framework, fault) for framework, faults in FAULTS.items() for fault in some(faults, SAMPLE)]


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("framework", "fault"), rows())
def test_the_kit_names_the_broken_clause(faulty, ompy_seed: int, framework: str, fault: str, ranks: int) -> None:
    check_clause(tried(framework, fault, ranks, ompy_seed), framework, fault, FAULTS[framework][fault], ompy_seed)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("framework", sorted(FAULTS))
def test_what_has_no_fault_passes(faulty, ompy_seed: int, framework: str, ranks: int) -> None:
    result = tried(framework, "", ranks, ompy_seed)
    assert result is None, result
