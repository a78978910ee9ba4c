"""The public function for environments that prepare the folder themselves."""

from __future__ import annotations

import inspect
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from patience import given_time

import skillopt.model as model
from skillopt import errors
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.testing import FakeCli, ScriptedModel, cli_role, cursor_turn, fake_codex, fake_copilot, fake_cursor

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

QUICK = Limits(retry_first_wait_seconds=0.001)


def run(cli: FakeCli, backend: str, work: Path, **given: Any) -> tuple[str, str]:
    if not work.exists():
        model.prepare_workspace(work_dir=work, skill_md=model.render_skill_md("S"), task_text="T")
    with model.use_session(Session({"target": cli_role(backend, cli)}, limits=QUICK)):
        return model.run_target_exec(work_dir=str(work), prompt="Use the skill.", **given)


def test_the_signature() -> None:
    parameters = inspect.signature(model.run_target_exec).parameters
    assert list(parameters) == [
        *("work_dir", "prompt", "model", "timeout", "images", "data_dirs", "allowed_tools", "permission_mode"),
        *("sandbox", "full_auto", "allow_file_edits"),
    ]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    assert parameters["allow_file_edits"].default is False


def test_everything_has_one_import_path_too() -> None:
    from skillopt.model import codex_harness

    assert codex_harness.run_target_exec is model.run_target_exec
    assert codex_harness.prepare_workspace is model.prepare_workspace
    assert set(codex_harness.__all__) <= set(vars(codex_harness))


def test_answer_and_trace_in_the_prepared_folder_with_files_beside_it(tmp_path: Path) -> None:
    work, cli = tmp_path / "item" / "work", fake_codex(tmp_path / "bin", "Paris")
    answer, trace = run(cli, "codex_exec", work, model="other", timeout=60, sandbox="workspace-write")
    (call,) = cli.calls
    assert (answer, call.cwd, call.value("-m")) == ("Paris", str(work), "other")
    assert call.stdin.endswith("\n\nUse the skill.") and "Do not modify files" in call.stdin
    assert call.value("--sandbox") == "workspace-write" and work.is_dir()
    assert trace.startswith("ERROR: Model metadata not found.\ncodex\nParis\ntokens used\n16")
    raw = (work.parent / "codex_raw.txt").read_text("utf-8")
    assert raw == f"===== CODEX CLI ATTEMPT 1 =====\n{trace}\n"
    assert "answer format: plain_text" in (work.parent / "codex_trace_summary.txt").read_text("utf-8")
    run(cli, "codex_exec", work)
    again = (work.parent / "codex_raw.txt").read_text("utf-8")
    assert again.startswith(raw + "===== TURN BREAK =====\n===== CODEX CLI ATTEMPT 1 =====\n")
    assert cli.calls[1].value("--sandbox") == "read-only"


def test_attempts_after_empty_answers_are_kept_too(tmp_path: Path) -> None:
    work, cli = tmp_path / "item" / "work", FakeCli(tmp_path, "c", [cursor_turn(""), cursor_turn("Paris")])
    assert run(cli, "cursor_exec", work)[0] == "Paris"
    raw = (work.parent / "cursor_raw.txt").read_text("utf-8")
    assert raw.count("CURSOR CLI ATTEMPT") == 2 and "TURN BREAK" not in raw and "Paris" not in raw


@pytest.mark.parametrize("fault", [{"hang": True}, {"is_error": True}])
def test_a_failed_run_is_kept_sanitised_and_raised(tmp_path: Path, fault: dict[str, Any]) -> None:  # spec 48, 50
    def failed(seconds: float) -> tuple[FakeCli, str]:
        root = tmp_path / str(seconds)
        key = "CURSOR_API_KEY=key_abcdefgh12345678\n"
        cli = fake_cursor(root / "bin", "private reason", **fault, stderr=key)
        with pytest.raises(errors.ModelError):
            run(cli, "cursor_exec", root / "item" / "work", timeout=seconds if "hang" in fault else 60.0)
        return cli, (root / "item" / "cursor_raw.txt").read_text("utf-8")

    cli, raw = given_time(failed, lambda made: "OMITTED" in made[1])
    assert "CURSOR_API_KEY=[REDACTED]" in raw and '"result":"[OMITTED]"' in raw and "private" not in raw
    assert len(cli.calls) == 1 and cli.survivors == ()


def test_copilot_leaves_no_files(tmp_path: Path) -> None:
    work = tmp_path / "item" / "work"
    assert run(fake_copilot(tmp_path / "bin", "Paris"), "copilot_exec", work)[0] == "Paris"
    assert [path.name for path in work.parent.iterdir()] == ["work"]


def test_data_that_is_denied_starts_nothing(tmp_path: Path) -> None:
    gold = tmp_path / "officeqa_split"
    gold.mkdir()
    cli = fake_codex(tmp_path / "bin")
    for given in ({"data_dirs": [str(gold)]}, {"images": [str(gold / "x.png")]}):
        with pytest.raises(ValueError, match="officeqa_split"):
            run(cli, "codex_exec", tmp_path / "item" / "work", **given)
    assert cli.calls == ()


def test_full_auto_only_warns_and_a_chat_target_is_refused(tmp_path: Path) -> None:  # spec 41
    cli = fake_codex(tmp_path / "bin")
    with pytest.warns(FutureWarning, match="deprecated and ignored"):
        run(cli, "codex_exec", tmp_path / "item" / "work", full_auto=True)
    assert "--full-auto" not in cli.calls[0].argv
    chat = Session({"target": ScriptedModel(["x"]).role()})
    with warnings.catch_warnings(), model.use_session(chat), pytest.raises(ValueError, match="no coding agent"):
        model.run_target_exec(work_dir=tmp_path, prompt="p")


def test_a_full_file_of_traces_gets_no_more(tmp_path: Path) -> None:
    from skillopt.model.harness import artifacts
    from skillopt.model.harness.agent import AgentRun
    from skillopt.types import Usage

    traces = AgentRun("answered", "a", "x" * 400_000, Usage())
    for _ in range(6):
        artifacts.keep(tmp_path, "codex", traces, 1)
    text = (tmp_path / "codex_raw.txt").read_text("utf-8")
    assert len(text) < artifacts.MOST_CHARS + 1000
    assert text.count("further traces left out") == 1
