"""A run that is stopped while models are slow to answer: it ends at once, leaves no thread, and goes on later."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from worlds import World, answer

from skillopt.cli.report import train_report
from skillopt.config.resolve import resolve
from skillopt.engine.trainer import train
from skillopt.errors import InterruptedRunError
from skillopt.testing import status
from skillopt.testing.faults import Fault
from skillopt.utils.cancel import CancelToken

PATIENCE = 30.0


def until(met: Callable[[], bool]) -> bool:
    ends = time.monotonic() + PATIENCE
    while not met() and time.monotonic() < ends:
        time.sleep(0.005)
    return met()


def client_threads(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads of ours that are still there; those of the server are not ours."""
    ours = [thread for thread in threading.enumerate() if thread not in before]
    return [thread for thread in ours if "process_request_thread" not in thread.name]


@pytest.mark.parametrize("slow", ["target-model", "optimizer-model"])
def test_it_ends_at_once_whatever_it_waits_for(make_world: Callable[..., World], slow: str) -> None:
    released = threading.Event()
    asked: list[str] = []

    def reply(request: Mapping[str, Any]) -> str:
        preflight = "Reply with: ok" in str(request["messages"])
        if not preflight and request["model"] == slow:
            asked.append(slow)
            released.wait(120)
        return answer(request)

    world = make_world(reply)
    path, stop = world.config(train={"num_epochs": 1}), CancelToken()
    before = set(threading.enumerate())
    box: list[BaseException] = []

    def run() -> None:
        try:
            train(resolve(path), stop=stop)
        except BaseException as error:  # noqa: BLE001 - looked at below
            box.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert until(lambda: bool(asked))
    begun = time.monotonic()
    stop.cancel()
    thread.join(PATIENCE)
    assert [type(error) for error in box] == [InterruptedRunError]
    assert time.monotonic() - begun < 20
    assert until(lambda: not client_threads(before)), client_threads(before)
    released.set()
    assert train(resolve(path))["test_hard"] > 0  # the same command goes on


def test_what_a_model_does_not_take_is_noted_for_who_compares_runs(make_world: Callable[..., World]) -> None:  # C137
    def faults(number: int) -> Fault | None:
        refused = "temperature" in world.server.requests[number - 1].body
        return status(400, body='{"error": {"message": "Unsupported parameter: temperature"}}') if refused else None

    world = make_world(faults=faults)
    path = world.config(train={"num_epochs": 1}, model={"openai_compatible_temperature": 0.3})
    summary = train(resolve(path))
    notes = [
        f"openai_compatible/{model} does not take the parameter temperature; it was left out."
        for model in ("optimizer-model", "target-model")
    ]
    assert sorted(summary["model_notes"]) == notes
    config = json.loads((world.out_root / "config.json").read_text("utf-8"))
    assert sorted(config["model_notes"]) == notes
    assert all(f"Note: {note}" in train_report(summary, str(world.out_root)) for note in notes)
    later = train(resolve(world.config(train={"num_epochs": 2}, model={"openai_compatible_temperature": 0.3})))
    assert sorted(later["model_notes"]) == notes
