"""`skillopt doctor`: what it finds, and that it finds nothing where nothing is wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import World

from skillopt import api
from skillopt.cli.main import main
from skillopt.engine import doctor_install
from skillopt.engine.doctor import CHECKS
from skillopt.engine.doctor_install import (
    check_python,
    check_sandbox,
    check_variables,
    check_write_access,
    diagnose_installation,
)
from skillopt.engine.findings import Finding
from skillopt.model.registry import load_backend
from skillopt.testing import LoopbackServer, garbage, status
from skillopt.utils.files import RunLock
from skillopt.utils.sandbox import LIMITS, strength

KEY = "sk-marked-key-0123456789abcdef"


def of(findings: list[Finding], level: str) -> list[Finding]:
    return [finding for finding in findings if finding.level == level]


def told(findings: list[Finding], check: str) -> str:
    return "\n".join(f"{f.level} {f.what} — {f.fix}" for f in findings if f.check == check)


def test_a_good_configuration_has_nothing_wrong(world: World) -> None:
    findings = api.doctor(world.config())
    assert not of(findings, "fail")
    assert "data: train 24 items, val 12 items, test 12 items; 6 steps" in told(findings, "data")
    calls = told(findings, "calls")
    assert "target: target-model answered in" in calls and "optimizer: optimizer-model answered in" in calls
    assert "finish stop, 10 tokens in, 5 out" in calls
    assert "no price of target-model is known" in told(findings, "prices")
    assert "may need none" in told(findings, "keys")
    assert [body["model"] for body in (r.body for r in world.server.requests)] == ["optimizer-model", "target-model"]
    assert not world.out_root.exists()
    assert all(finding.fix for finding in findings if finding.level != "ok")


def test_offline_sends_nothing(world: World) -> None:
    findings = api.doctor(world.config(), offline=True)
    assert not of(findings, "fail") and not world.server.requests
    assert "not called" in told(findings, "calls")


def test_a_wrong_key_is_named_with_its_variable(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    findings = api.doctor(make_world(key="another").config())
    (first, second) = of(findings, "fail")
    assert "Incorrect API key" in first.what
    assert "OPENAI_COMPATIBLE_API_KEY" in first.fix and "OPENAI_COMPATIBLE_API_KEY" in second.fix
    assert "key given by env OPENAI_COMPATIBLE_API_KEY" in told(findings, "keys")
    assert KEY not in repr(findings)


def test_an_unknown_model(make_world: Callable[..., World]) -> None:
    body = '{"error": {"message": "The model `optimizer-model` does not exist", "code": "model_not_found"}}'
    findings = api.doctor(make_world(faults=[status(404, body=body)]).config())
    (finding,) = of(findings, "fail")
    assert "does not exist" in finding.what and "model.optimizer" in finding.fix


def test_nothing_listens(world: World) -> None:
    world.server.close()
    findings = api.doctor(world.config())
    assert len(of(findings, "fail")) == 2
    assert "OPENAI_COMPATIBLE_BASE_URL" in of(findings, "fail")[0].fix


def test_a_busy_server_is_a_warning(make_world: Callable[..., World]) -> None:
    findings = api.doctor(make_world(faults=[status(429), None]).config())
    assert not of(findings, "fail")
    assert "warn optimizer:" in told(findings, "calls")


def test_a_server_that_goes_on_failing_would_stop_a_run(make_world: Callable[..., World]) -> None:
    findings = api.doctor(make_world(faults=lambda _: garbage()).config())
    assert len(of(findings, "fail")) == 2
    assert "wait until it works again, or set OPENAI_COMPATIBLE_BASE_URL" in of(findings, "fail")[0].fix
    assert not of(api.doctor(make_world(faults=[status(500), None]).config()), "fail")


def test_missing_data_and_a_broken_skill(world: World, tmp_path: Path) -> None:
    skill = tmp_path / "s.md"
    skill.write_text("<!-- SLOW_UPDATE_START -->\nx\n", encoding="utf-8")
    env = {"split_dir": str(tmp_path / "nowhere"), "skill_init": str(skill)}
    findings = api.doctor(world.config(env=env), offline=True)
    assert "nowhere does not exist" in told(findings, "data")
    assert str(skill) in told(findings, "skill")
    assert len(of(findings, "fail")) >= 2


def test_a_folder_that_another_process_holds_or_that_holds_another_run(world: World) -> None:
    config = world.config()
    with RunLock(world.out_root):
        assert "another run works in this folder" in told(api.doctor(config, offline=True), "folder")
    api.train(world.config(train={"num_epochs": 1}))
    assert "holds a run that goes on" in told(api.doctor(world.config(train={"num_epochs": 1}), offline=True), "folder")
    other = told(api.doctor(world.config(train={"num_epochs": 1, "seed": 8}), offline=True), "folder")
    assert "fail" in other and "train.seed: was 7, now 8" in other


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a user whom permissions stop")
def test_a_folder_that_cannot_be_written(world: World, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    findings = api.doctor(world.config(env={"out_root": str(closed / "run")}), offline=True)
    assert "cannot be written" in told(findings, "folder")


def test_a_budget_that_is_too_small_and_a_price_that_it_needs(world: World) -> None:
    findings = api.doctor(world.config(budget={"max_calls": 5}), offline=True)
    assert "supports 0 complete proposals" in told(findings, "budget")
    findings = api.doctor(world.config(budget={"max_cost_usd": 5}), offline=True)
    assert "fail" in told(findings, "prices") and "model.price_file" in told(findings, "prices")


@pytest.mark.parametrize("backend", ["claude_chat", "copilot_chat", "codex_exec"])
def test_a_program_that_is_not_there(world: World, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_backend(backend)
    monkeypatch.setenv("PATH", "")
    model = {"backend": "openai_compatible", "optimizer_backend": backend, "optimizer": "x"}
    findings = api.doctor(world.config(model=model), offline=True)
    keys = told(findings, "keys")
    assert "which is not found — install" in keys and backend.split("_")[0].upper() in keys


def test_an_sdk_that_is_not_installed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    model = {"backend": "openai_compatible", "target_backend": "claude_code_exec", "claude_code_exec_use_sdk": "sdk"}
    backends = told(api.doctor(world.config(model=model), offline=True), "backends")
    assert "claude_agent_sdk, which is not installed" in backends and 'pip install "skillopt[claude]"' in backends


def test_the_program_that_comes_with_an_sdk(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "claude_agent_sdk" / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
    program.parent.mkdir(parents=True)
    program.write_text("")
    (tmp_path / "claude_agent_sdk" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", "")
    model = {"backend": "openai_compatible", "target_backend": "claude_code_exec"}
    found = told(api.doctor(world.config(model={**model, "claude_code_exec_use_sdk": "sdk"}), offline=True), "keys")
    assert f"the program claude is {program}" in found
    lacking = told(api.doctor(world.config(model=model), offline=True), "keys")
    assert "needs the program claude, which is not found" in lacking


def test_a_blank_key_where_one_is_surely_needed(world: World) -> None:
    model = {"openai_compatible_base_url": "https://api.openai.com/v1"}
    keys = told(api.doctor(world.config(model=model), offline=True), "keys")
    assert "fail target: openai_compatible has no key — set OPENAI_COMPATIBLE_API_KEY" in keys
    model = {"openai_compatible_base_url": "https://llm.example.org/v1"}
    assert "warn target" in told(api.doctor(world.config(model=model), offline=True), "keys")


def test_azure_without_endpoint_or_program(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    keys = told(api.doctor(world.config(model={"backend": "azure_openai"}), offline=True), "keys")
    assert "openai_chat has no endpoint — set AZURE_OPENAI_ENDPOINT" in keys
    assert "`az login`" in keys


def test_what_azure_lacks_is_said_once_and_without_a_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    model = {"backend": "azure_openai", "azure_openai_endpoint": world.server.url, "azure_openai_auth_mode": "api_key"}
    findings = api.doctor(world.config(model=model))
    assert {(f.check, f.fix) for f in of(findings, "fail")} == {
        ("keys", "set AZURE_OPENAI_API_KEY or model.azure_openai_api_key")
    }
    assert "warn target: not called" in told(findings, "calls")
    managed = {**model, "azure_openai_auth_mode": "managed_identity"}
    (first, _) = of(api.doctor(world.config(model=managed)), "fail")
    assert "a token, which goes only to https://NAME.openai.azure.com" in first.what
    assert "AZURE_OPENAI_ENDPOINT" in first.fix and "AZURE_OPENAI_AUTH_MODE" in first.fix
    assert not world.server.requests


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model: {backend: [", "not valid YAML"),
        ("model: {backnd: mock}", "did you mean model.backend?"),
        ("train: {batch_size: many}\ntrian: {}", "unknown key trian"),
    ],
)
def test_a_configuration_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    findings = api.doctor(path)
    assert words in told(findings, "configuration") and of(findings, "fail")
    assert f"correct {path}" in findings[0].fix


def test_warnings_of_the_configuration_are_findings_and_hold_no_key(world: World) -> None:
    findings = api.doctor(world.config(model={"openai_compatible_api_key": KEY}), offline=True)
    assert "is a credential" in told(findings, "configuration")
    assert KEY not in repr(findings)


def test_an_environment_that_breaks_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_env.py").write_text(
        "from skillopt.envs.jsonl.adapter import JsonlEnv\n"
        "class Broken(JsonlEnv):\n"
        "    def setup(self, cfg): raise KeyError('oops')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {
        "model": {"backend": "mock_chat"},
        "env": {"name": "broken_env:Broken", "out_root": str(tmp_path / "run")},
    }
    data = told(api.doctor(config, offline=True), "data")
    assert data.startswith("fail data: ") and "KeyError" in data and "oops" in data


def test_a_package_that_an_environment_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lacking_env.py").write_text(
        "from skillopt.errors import MissingExtraError\n"
        "raise MissingExtraError('lacking needs nothere; run: pip install \"skillopt[lacking]\"')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    config = {"model": {"backend": "mock_chat"}, "env": {"name": "lacking_env:X", "out_root": str(tmp_path / "run")}}
    findings = api.doctor(config, offline=True)
    assert 'pip install "skillopt[lacking]"' in [finding.fix for finding in of(findings, "fail")]


def test_what_a_backend_warns_of_is_a_finding(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWEN_CHAT_BASE_URL", world.server.url)
    findings = api.doctor(world.config(model={"target_backend": "qwen_chat"}))
    assert "QWEN_CHAT_THINKING_MODE" in told(of(findings, "warn"), "calls")


def test_a_script_that_is_missing_stops_a_run_on_this_machine(tmp_path: Path) -> None:
    config = {"model": {"backend": "mock_chat"}, "env": {"name": "jsonl", "out_root": str(tmp_path / "run")}}
    assert "model.mock_chat_script" in told(api.doctor(config, offline=True), "calls")


def test_the_installation() -> None:
    findings = diagnose_installation({"PATH": "x"})
    checks = {finding.check for finding in findings}
    assert {"python", "packages", "extras", "folder", "tokens"} <= checks
    assert not of(findings, "fail")
    assert any('pip install "skillopt[' in finding.fix for finding in findings)
    listed = {finding.what.split(":")[0].removeprefix("extra ") for finding in findings if finding.check == "extras"}
    assert {"local", "searchqa", "datasets", "spreadsheet", "docvqa", "alfworld", "claude", "codex"} == listed
    assert of(list(check_python((3, 9, 1))), "fail")
    assert of(list(check_write_access(Path("/nowhere"))), "warn")


def test_variables_that_seem_to_be_misspelt() -> None:
    environ = {
        "OPENAI_COMPATIBLE_APIKEY": KEY,
        "TARGET_BACKND": "mock_chat",
        "OPENAI_API_KEY": KEY,
        "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
        "HOME": "/root",
    }
    findings = list(check_variables(environ))
    warned = {finding.what.split()[0]: finding.fix for finding in of(findings, "warn")}
    assert warned == {
        "OPENAI_COMPATIBLE_APIKEY": "did you mean OPENAI_COMPATIBLE_API_KEY?",
        "TARGET_BACKND": "did you mean TARGET_BACKEND?",
    }
    assert "set and read: AZURE_OPENAI_ENDPOINT" in findings[0].what
    assert KEY not in repr(findings)


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*arguments: str) -> tuple[int, str]:
        code = main(["doctor", *arguments])
        return code, capsys.readouterr().out

    return run


def test_the_command(world: World, doctor: Callable[..., tuple[int, str]]) -> None:
    code, out = doctor("--config", str(world.config()))
    assert code == 0 and "Nothing here would stop a run." in out
    assert all(line[:4].strip() in ("ok", "warn", "fail") for line in out.splitlines()[:-1])
    code, out = doctor("--config", str(world.config()), "--cfg-options", "env.split_dir=nowhere", "--offline")
    assert code == 1 and "fail  data: " in out and " — " in out
    code, out = doctor()
    assert code == 0 and "Python 3" in out


def test_the_command_for_programs(world: World, doctor: Callable[..., tuple[int, str]]) -> None:
    code, out = doctor("--config", str(world.config()), "--offline", "--json")
    report: Mapping[str, Any] = json.loads(out)
    assert code == 0 and report["ok"] is True and report["offline"] is True
    assert all(set(finding) == {"level", "check", "what", "fix"} for finding in report["findings"])
    code, out = doctor("--config", str(world.root / "none.yaml"), "--json")
    assert code == 1 and json.loads(out)["ok"] is False


def test_the_command_takes_the_flags_of_a_training(world: World, doctor: Callable[..., tuple[int, str]]) -> None:
    code, out = doctor("--config", str(world.config()), "--offline", "--target_model", "another")
    assert code == 0 and "target: openai_compatible, another" in out
    data, skill = world.root / "tasks.csv", world.root / "S.md"
    data.write_text("question,answer\n" + "".join(f"q{n},a{n}\n" for n in range(20)), encoding="utf-8")
    skill.write_text("Be brief.\n", encoding="utf-8")
    own = ("--skill", str(skill), "--data", str(data), "--scorer", "exact", "--out_root", str(world.root / "new"))
    code, out = doctor(*own, "--backend", "mock")
    assert "target: mock_chat" in out and "train 4 items" in out and f"skill: {skill} (10 characters)" in out
    assert code == 1 and "model.mock_chat_script" in out


def test_wrong_usage(doctor: Callable[..., tuple[int, str]]) -> None:
    with pytest.raises(SystemExit) as stopped:
        doctor("--nonsense")
    assert stopped.value.code == 2


def test_checks_are_functions_of_a_case() -> None:
    assert [check.__name__ for check in CHECKS][:3] == ["check_backends", "check_environment", "check_data"]


def test_a_server_that_echoes_the_key(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    with LoopbackServer("ok", faults=lambda _: status(401, body=f'{{"error": {{"message": "Bearer {KEY}"}}}}')) as bad:
        findings = api.doctor(world.config(model={"openai_compatible_base_url": bad.url}))
    assert len(of(findings, "fail")) == 2 and KEY not in repr(findings)


def test_a_sandbox_that_does_not_shut_in_is_told_with_what_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = check_sandbox()
    assert (found.level, found.check) == ("ok" if strength().isolates_files else "warn", "sandbox")
    monkeypatch.setattr(doctor_install, "strength", lambda: LIMITS)
    for required, level in ((False, "warn"), (True, "fail")):
        (found,) = check_sandbox(required=required)
        assert found.level == level
        assert "limits only" in found.what
        assert "bubblewrap" in found.fix
