"""hook/faulty: a watcher that gets one thing wrong, by parameter."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Generator
from typing import Any

from ompy.core.memory import address_of
from ompy.core.typemap import predefined
from ompy.mca.component import PROJECT, Component, Context, Offer, Parameter, Refusal, hookimpl
from ompy.mca.params import registry

COMPONENT = Component(
    framework="hook",
    name="faulty",
    version="1.0",
    interface=1,
    summary="with a fault",
    parameters=(Parameter("fault", str, "", level=9, help="name of the fault; empty: none"),),
)
STANDARD, BYTE = 0, 1  # a mode of sends, and a type
kept: list[object] = []
inside: list[object] = []


def is_faulty(*names: str) -> bool:
    return registry.value("hook_faulty_fault") in names


@hookimpl
def ompy_component() -> Component:
    return COMPONENT


@hookimpl
def ompy_query(context: Context) -> Generator[None, Offer | Refusal, Any]:
    # The job's own queries go well: what is wrong shows later, as it may in a component's life.
    late = context.component.summary == "asked"
    inside.append(context.component.name)
    try:
        answer: Any = yield
    except KeyboardInterrupt:
        if late and is_faulty("IgnoresTheKeyboard"):
            return Refusal("somebody has had enough")
        raise
    except Exception as error:
        if late and is_faulty("ErrorsAreRefusals"):
            return Refusal(str(error))
        if late and is_faulty("ErrorsAreRenamed"):
            raise RuntimeError("a query failed") from error
        raise
    finally:
        inside.pop()
    if late and inside and is_faulty("NotNested"):
        raise RuntimeError("already asking")
    if late and is_faulty("SaysNothing"):
        return None
    if late and is_faulty("AnswersWithTheModule") and isinstance(answer, Offer):
        return answer.modules[0]
    if late and is_faulty("OffersItsOwnWrapper") and isinstance(answer, Offer):
        answer.modules = [(module, time.perf_counter()) for module in answer.modules]
    if late and is_faulty("RefusesWithoutReason") and isinstance(answer, Refusal):
        return Refusal("")
    if late and is_faulty("KeepsAnswers"):
        kept.append(answer)
    if is_faulty("PrintsQueries"):
        print(context.component.name)
    return answer


ompy_query.__dict__[f"{PROJECT}_impl"]["wrapper"] = True


@hookimpl
def ompy_initialized(instance: Any) -> None:
    if is_faulty("Raises"):
        raise ValueError("the watcher is not well")
    if is_faulty("MeetsOnOneRank") and instance.rte.rank == 0:
        instance.rte.commit_and_fence()
    if is_faulty("LeavesAMessage") and instance.rte.rank == 1:
        words = bytearray(b"unheard of")
        kept.append(words)
        instance.pml.isend(address_of(words), len(words), predefined(BYTE), 0, 77, STANDARD, instance.world)
    if is_faulty("TakesASignal"):
        signal.signal(signal.SIGUSR2, lambda number, frame: None)
    if is_faulty("TakesTheExceptHook"):
        sys.excepthook = lambda *_: None
    if is_faulty("Moves"):
        os.chdir("/")
    if is_faulty("SetsVariables"):
        os.environ["WATCHED"] = "1"
    if is_faulty("TakesTheOutput"):
        sys.stdout = sys.stderr
    if is_faulty("HoldsTheEnd"):
        threading.Thread(target=lambda: time.sleep(3600)).start()
    if is_faulty("ChangesTheStatus"):
        atexit.register(os._exit, 3)
