"""Names, roles, and what a configuration would reach."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.backends import (
    CallCache,
    DualBackend,
    HandoffBackend,
    MockBackend,
    backend_for_config,
    build_backend,
    get_backend,
    reaches_network,
)
from skillopt_sleep.backends.build import ROWS
from skillopt_sleep.config import load_config
from skillopt_sleep.config_keys import BACKEND_ALIASES
from skillopt_sleep.errors import CallFailed, UsageProblem
from skillopt_sleep.evidence import EvidenceLog, attach, set_phase
from skillopt_sleep.types import ReplayResult, TaskRecord


@pytest.mark.parametrize("alias", sorted(set(BACKEND_ALIASES) | set(ROWS)))
def test_every_alias_gives_its_backend_or_says_that_there_is_none(alias: str) -> None:
    own = BACKEND_ALIASES.get(alias, alias)
    if own in ROWS:
        assert get_backend(alias.upper()).name == own
    else:
        with pytest.raises(UsageProblem, match="not part of this version"):
            get_backend(alias)


@pytest.mark.parametrize(("name", "hint"), [("cladue", "claude"), ("mok", "mock"), ("azzure", "azure"), ("", "mock")])
def test_an_unknown_backend_is_an_error_and_never_the_mock(name: str, hint: str) -> None:
    with pytest.raises(UsageProblem, match=hint) as problem:
        get_backend(name)
    assert problem.value.exit_code == 2


def test_a_role_makes_a_pair_and_inherits_what_it_does_not_say() -> None:
    assert isinstance(build_backend(backend="mock", model="m"), MockBackend)
    pair = build_backend(backend="codex", model="m", optimizer_backend="claude", target_model="t", preferences="short")
    assert isinstance(pair, DualBackend)
    assert (pair.target.name, pair.target.model) == ("codex", "t")
    assert (pair.optimizer.name, pair.optimizer.model) == ("claude", "sonnet")
    assert pair.judger is pair.optimizer
    assert pair.name == "target=codex/optimizer=claude"
    assert pair.model_key == "optimizer=claude::sonnet;target=codex::t"
    assert pair.target.meter is pair.optimizer.meter
    assert pair.target.preferences == pair.optimizer.preferences == "short"


def test_the_judge_can_be_a_role_of_its_own() -> None:
    pair = build_backend(backend="mock", optimizer_backend="codex", optimizer_model="o", judge_model="j")
    assert isinstance(pair, DualBackend)
    assert (pair.judger.name, pair.judger.model, pair.optimizer.model) == ("codex", "j", "o")
    assert pair.name.endswith("/judge=codex")


@pytest.mark.parametrize(
    "settings",
    [
        {"backend": "claude"},
        {"backend": "mock", "optimizer_backend": "azure_openai"},
        {"backend": "mock", "target_backend": "codex"},
        {"backend": "mock", "judge_backend": "claude"},
        {"backend": "handoff"},
        {"optimizer_backend": "codex", "target_backend": "mock"},
    ],
)
def test_any_real_role_reaches_the_network_whichever_option_chose_it(settings: dict[str, str]) -> None:
    assert reaches_network(load_config(**settings))


def test_a_night_of_mocks_reaches_nothing() -> None:
    assert not reaches_network(load_config(backend="mock"))
    assert not reaches_network(load_config(optimizer_backend="mock", target_backend="mock", backend="mock"))


def test_a_configuration_makes_its_backend_with_its_caps(tmp_path: Path) -> None:
    config = load_config(
        backend="mock", max_calls_per_night=5, max_tokens_per_night=None, preferences="short", invoked_project=tmp_path
    )
    cache = CallCache()
    backend = backend_for_config(config, cache=cache)
    assert (backend.meter.max_calls, backend.meter.max_tokens) == (5, 400_000)
    assert backend.preferences == "short"
    assert backend.cache is cache


def test_a_backend_that_could_not_call_is_found_out_before_the_night(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="AZURE_OPENAI_ENDPOINT"):
        backend_for_config(load_config(backend="azure_openai", invoked_project=tmp_path))
    config = load_config(backend="azure_openai", azure_endpoint="https://evil.example", invoked_project=tmp_path)
    with pytest.raises(CallFailed, match="openai_compatible"):
        backend_for_config(config)
    assert backend_for_config(config, checked=False).name == "azure_openai"
    missing = load_config(backend="codex", codex_path=str(tmp_path / "none"), invoked_project=tmp_path)
    with pytest.raises(CallFailed, match="codex_path"):
        backend_for_config(missing)


def test_a_handoff_night_keeps_its_answers_in_its_own_folder(tmp_path: Path) -> None:
    config = load_config(backend="handoff", invoked_project=str(tmp_path))
    backend = backend_for_config(config, cache=CallCache(tmp_path / "c"))
    assert isinstance(backend, HandoffBackend)
    assert backend.folder.root == tmp_path / ".skillopt-sleep-handoff"


def test_each_role_does_its_part(scripted: Any) -> None:
    target, optimizer, judger = scripted("an answer"), scripted("[]"), scripted('{"score": 0.9}')
    pair = DualBackend(target, optimizer, judger)
    task = TaskRecord("t1", "/p", "do", reference_kind="rubric")
    exact = TaskRecord("t2", "/p", "do", reference_kind="exact", reference="an answer")
    assert pair.attempt(task, "", "") == "an answer"
    assert pair.judge(task, "x")[1] == 0.9
    assert pair.judge(exact, "an answer")[0] == 1.0
    pair.reflect([(task, ReplayResult("t1"))], [], "", "", edit_budget=1, evolve_skill=True, evolve_memory=False)
    pair.call("q", kind="mine")
    assert [len(part.sent) for part in (target, optimizer, judger)] == [1, 3, 1]
    assert pair.tokens_used() == target.tokens_used() + optimizer.tokens_used() + judger.tokens_used()


def test_a_pair_tells_what_went_wrong_in_each_role(scripted: Any, tmp_path: Path) -> None:
    pair = DualBackend(scripted(" "), scripted("raw reply"))
    task = TaskRecord("t1", "/p", "do", reference_kind="rubric")
    with pytest.raises(CallFailed):
        pair.attempt(task, "", "")
    pair.reflect([(task, ReplayResult("t1"))], [], "", "", edit_budget=1, evolve_skill=True, evolve_memory=False)
    assert "target: scripted gave an empty answer." in pair.last_call_error
    assert "optimizer: Two replies" in pair.last_call_error
    assert pair.last_reflect_raw == "raw reply"
    log = EvidenceLog(tmp_path / "e")
    attach(pair, log)
    set_phase(pair, "train")
    assert pair.target.evidence is pair.optimizer.evidence is log
    assert pair.evidence_phase == pair.optimizer.evidence_phase == "train"


def test_a_preview_of_a_pair_is_one_list(scripted: Any) -> None:
    pair = DualBackend(scripted(), scripted())
    calls = pair.start_preview()
    for ask in (lambda: pair.attempt(TaskRecord("t1", "/p", "do"), "", ""), lambda: pair.call("q", kind="mine")):
        with pytest.raises(CallFailed):
            ask()
    assert [call.kind for call in calls] == ["attempt", "mine"]


def test_making_a_backend_imports_nothing_heavy() -> None:
    code = (
        "import sys, skillopt_sleep.backends as b\n"
        "for name in ('mock', 'claude', 'codex', 'azure_openai', 'handoff'): b.get_backend(name)\n"
        "heavy = {'azure', 'openai', 'requests', 'pydantic', 'skillopt', 'json_repair', 'yaml'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
