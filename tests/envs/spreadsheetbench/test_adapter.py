"""Items run in each mode: what the target is shown and told, what its programs are worth, what the row says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sheets import HEAD, SOLUTIONS, TAIL, WITH_FORMULA, fenced

from skillopt.envs.base import TaskEnv
from skillopt.envs.runner import run_batch, run_items
from skillopt.envs.spreadsheetbench import run_solution
from skillopt.envs.spreadsheetbench.adapter import SpreadsheetBenchEnv
from skillopt.envs.spreadsheetbench.execution import Run
from skillopt.envs.spreadsheetbench.grading import grade
from skillopt.errors import ConfigError, TransientError
from skillopt.model.session import Session
from skillopt.model.values import CompatToolCall, CompatToolFunction, ModelReply
from skillopt.testing import cli_role, fake_codex
from skillopt.types import RolloutResult, Usage
from skillopt.utils.process import run_process

SOLVE = HEAD + "book.worksheets[0]['A1'] = 2\n" + TAIL
WRONG = HEAD + "book.worksheets[0]['A1'] = 77\n" + TAIL
CRASH = "raise KeyError('Amount')"
PAIR = {"1_a_input.xlsx": {"My sheet": [(1, 5)]}, "1_a_answer.xlsx": {"My sheet": [(2, 5)]}}
TWO = {**PAIR, "2_a_input.xlsx": {"My sheet": [(8, 5)]}, "2_a_answer.xlsx": {"My sheet": [(9, 5)]}}


def run(bench: Any, env: Any, *replies: Any, **context: Any) -> tuple[RolloutResult, Any]:
    """The result of the first item when the target gives these replies, and the session."""
    left = list(replies)
    session = bench.session(lambda *_: left.pop(0))
    ctx = bench.context(session, workers=1, **context)
    return run_items(env, env.all_items()[:1], "# Skill\n- rule", ctx)[0], session


def tool(name: str, **arguments: str) -> ModelReply:
    call = CompatToolCall(f"c-{name}", CompatToolFunction(name, json.dumps(arguments)))
    return ModelReply("", "tool_calls", Usage(1), tool_calls=(call,))


def test_single_is_one_reply_run_on_every_case(bench: Any, own_env: Callable[..., Any]) -> None:
    result, session = run(bench, own_env(TWO, answer_position="A1"), fenced(SOLVE))
    assert (result.hard, result.soft, result.n_turns, result.status) == (0.0, 0.5, 1, "ok")
    assert result.fail_reason == "eval-mismatch: cell My sheet!A1 holds 2, expected 9"
    assert result.predicted_answer == SOLVE.rstrip()
    row = result.extras
    assert (row["n_cases"], row["n_exec_pass"], row["n_pass"], row["exec_ok"], row["phase"]) == (2, 2, 1, True, "eval")
    assert row["cases"][0] == {"no": "1", "stage": "eval", "ok": True}
    assert row["cases"][1]["reason"] == result.fail_reason
    assert [entry["role"] for entry in result.trajectory] == ["assistant", "system"]
    assert "Case 1: PASS" in result.trajectory[-1]["content"] and "Case 2: FAIL" in result.trajectory[-1]["content"]
    assert "A1=1 | B1=5" in result.spreadsheet_preview
    system, user = session.seen[0].messages
    assert system["content"].endswith("## Skill\n\n# Skill\n- rule") and "INPUT_PATH" in system["content"]
    assert "Do it." in user["content"] and result.spreadsheet_preview in user["content"]
    assert (result.target_system_prompt, result.target_user_prompt) == (system["content"], user["content"])
    assert (result.task_type, result.task_description) == ("cell_level", "Do it.")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("```python\n```", "empty-code-block"),
        (fenced(CRASH), "exec-error: KeyError: 'Amount'"),
        (fenced("pass"), "output-not-found"),
        (fenced("open(OUTPUT_PATH, 'w').write('no zip')"), "eval-mismatch: output.xlsx: cannot be read"),
        (fenced(HEAD + "book.worksheets[0].title = 'Other'\n" + TAIL), "eval-mismatch: the output has no sheet"),
        pytest.param(fenced(WITH_FORMULA), "eval-mismatch", marks=pytest.mark.slow),
        ("I would add the numbers up.", "exec-error: SyntaxError"),
    ],
)
def test_the_reason_of_a_failure_has_a_code(bench: Any, own_env: Callable[..., Any], reply: str, reason: str) -> None:
    result, _ = run(bench, own_env(PAIR, answer_position="A1"), reply)
    assert (result.hard, result.soft, result.status) == (0.0, 0.0, "ok")
    assert result.fail_reason.startswith(reason)


def test_a_formula_reads_as_empty_and_the_report_says_so(bench: Any, own_env: Callable[..., Any]) -> None:
    code = HEAD + "book.worksheets[0]['A1'] = '=B1-3'\n" + TAIL
    result, _ = run(bench, own_env(PAIR, answer_position="A1"), fenced(code))
    assert result.hard == 0
    assert "Formulas of the output that hold no value:\nMy sheet!A1: =B1-3" in result.trajectory[-1]["content"]


def test_multi_keeps_the_conversation_and_counts_the_last_program_only(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, {"mode": "multi"}, answer_position="A1")
    result, session = run(bench, env, fenced(CRASH), "```python\n```", fenced(SOLVE))
    assert (result.hard, result.n_turns, result.fail_reason) == (1.0, 3, "")
    assert "KeyError: 'Amount'" in session.seen[1].last_user
    assert "no program in your reply" in session.seen[2].last_user
    assert [m["role"] for m in session.seen[2].messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "Do it." in session.seen[2].messages[1]["content"]


def test_multi_ends_with_its_turns_and_an_earlier_output_is_no_help(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, {"mode": "multi", "max_turns": 2, "use_eval_feedback": True}, answer_position="A1")
    told = {"use_eval_feedback": True}
    result, _ = run(bench, env, fenced(WRONG), fenced(CRASH), rollout_options=told)
    assert (result.hard, result.n_turns) == (0.0, 2)
    assert result.fail_reason.startswith("exec-error: KeyError")


def test_wrong_cells_are_told_in_training_only_and_never_the_right_values(
    bench: Any, own_env: Callable[..., Any]
) -> None:
    books = {"1_a_input.xlsx": {"My sheet": [(1,)]}, "1_a_answer.xlsx": {"My sheet": [(4711,)]}}
    env = own_env(books, {"mode": "multi", "use_eval_feedback": True}, answer_position="'My sheet'!A1")
    right = fenced(HEAD + "book.worksheets[0]['A1'] = 4711\n" + TAIL)
    left = [fenced(WRONG), right, fenced(WRONG)]
    session = bench.session(lambda *_: left.pop(0))
    ctx = bench.context(session, workers=1)
    batch = env.get_dataloader().build_train_batch(1, 0)
    trained = run_batch(env, replace(batch, payload=[env.all_items()[0].to_dict()]), "", ctx, bench.store)[0]
    assert (trained.hard, trained.n_turns, trained.extras["use_eval_feedback"]) == (1.0, 2, True)
    said = session.seen[1].last_user
    assert "My sheet!A1: got 77" in said and "4711" not in said
    judged = run_items(env, env.all_items()[:1], "", ctx)[0]
    assert (judged.hard, judged.n_turns, judged.extras["use_eval_feedback"]) == (0.0, 1, False)


def test_without_the_setting_training_is_as_blind_as_evaluation(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, {"mode": "multi"}, answer_position="A1")
    assert env.train_options == {}
    result, _ = run(bench, env, fenced(WRONG), rollout_options={"use_eval_feedback": True})
    assert (result.hard, result.n_turns) == (0.0, 1)


def test_react_works_with_tools_and_runs_its_program_on_the_other_cases(
    bench: Any, own_env: Callable[..., Any]
) -> None:
    code = (
        "import openpyxl\nbook = openpyxl.load_workbook('input.xlsx')\n"
        "sheet = book.worksheets[0]\nsheet['A1'] = sheet['A1'].value + 1\nbook.save('output.xlsx')\n"
    )
    replies = [
        tool("write_file", path="solution.py", content=code),
        tool("bash", cmd="python solution.py"),
        ModelReply("Done.", usage=Usage(1)),
    ]
    result, session = run(bench, own_env(TWO, {"mode": "react"}, answer_position="A1"), *replies)
    assert (result.hard, result.n_turns, result.extras["agent_ok"]) == (1.0, 3, True)
    assert [t["function"]["name"] for t in session.seen[0].tools] == ["bash", "write_file"]
    last = session.seen[2].messages[-1]
    assert last["role"] == "tool" and last["tool_call_id"] == "c-bash" and "A1=2 | B1=5" in last["content"]
    assert [entry.get("cmd", "")[:10] for entry in result.trajectory] == ["write_file", "bash pytho", "", ""]
    assert "/" not in session.seen[0].messages[1]["content"].split("Files in your folder")[1].split("##")[0]


def test_react_without_its_program_fails_the_other_cases(bench: Any, own_env: Callable[..., Any]) -> None:
    program = "import openpyxl; b = openpyxl.load_workbook('input.xlsx'); b.active['A1'] = 2; b.save('output.xlsx')"
    env = own_env(TWO, {"mode": "react", "max_turns": 1}, answer_position="A1")
    result, _ = run(bench, env, tool("bash", cmd=f'python -c "{program}"'))
    assert (result.hard, result.soft) == (0.0, 0.5)
    assert result.fail_reason.startswith("no-solution-py-for-other-cases")


def test_react_without_an_output_fails(bench: Any, own_env: Callable[..., Any]) -> None:
    result, _ = run(bench, own_env(PAIR, {"mode": "react"}, answer_position="A1"), "I am done.")
    assert result.fail_reason.startswith("output-not-found") and result.hard == 0


def test_time_that_programs_use_up_is_the_targets_and_is_graded(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, {"mode": "multi", "exec_timeout": 1.2}, answer_position="A1")
    slow = fenced("import time\ntime.sleep(60)")
    result, _ = run(bench, env, slow, slow, item_timeout=1.2)
    assert (result.status, result.extras["phase"]) == ("ok", "timeout")
    assert result.fail_reason.startswith("task-timeout-1.2s")


def test_a_failing_provider_is_an_error_and_no_zero(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, answer_position="A1")

    def fail(*_: Any) -> Any:
        raise TransientError("503")

    broken = run_items(env, env.all_items()[:1], "", bench.context(bench.session(fail), item_retries=0))[0]
    assert (broken.status, broken.error) == ("error", "TransientError: 503")
    result, _ = run(bench, env, fenced(SOLVE))  # not kept, so it is tried again
    assert result.hard == 1


def test_what_is_finished_is_not_run_again(bench: Any, sample_env: Callable[..., Any]) -> None:
    env = sample_env()
    ctx = bench.context(bench.session(lambda *_: fenced(SOLUTIONS["total"])), workers=2)
    first = run_items(env, env.all_items()[:2], "", ctx)
    assert [result.hard for result in first] == [1.0, 0.0]
    again = bench.session(lambda *_: pytest.fail("asked again"))
    assert run_items(env, env.all_items()[:2], "", bench.context(again)) == first


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SOLUTIONS))
def test_right_programs_solve_the_samples(sample_env: Callable[..., Any], name: str) -> None:
    env = sample_env()
    item = next(item for item in env.all_items() if item.id == f"val-{name}")
    assert env.score(item, SOLUTIONS[name]).hard == 1
    assert env._rows.notices == []


def test_hostile_ids_are_only_names(bench: Any, own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, folder="safe", id="../../etc", spreadsheet_path="safe", answer_position="A1")
    result, _ = run(bench, env, fenced(SOLVE))
    assert (result.id, result.hard) == ("../../etc", 1.0)


def test_text_in_braces_stays_as_it_is(own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, instruction="Put {preview} and {answer_position} into A1", answer_position="A1")
    assert "Put {preview} and {answer_position} into A1" in env.messages(env.all_items()[0], "{skill}")[1]["content"]
    assert "{skill}" in env.messages(env.all_items()[0], "{skill}")[0]["content"]


def test_pandas_is_offered_only_where_it_is_installed(
    sample_env: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    find = importlib.util.find_spec
    with monkeypatch.context() as patched:
        patched.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name == "pandas" else find(name, *more)
        )
        env = sample_env()
    text = env.messages(env.all_items()[0], "")[0]["content"]
    assert "the standard library and openpyxl." in text and "pandas" not in text


def test_an_agent_in_another_mode_ends_the_run(
    bench: Any, own_env: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = own_env(PAIR, {"mode": "multi"}, answer_position="A1")
    session = bench.session(lambda *_: "")
    monkeypatch.setitem(session.roles, "target", replace(session.roles["target"], backend="codex_exec"))
    with pytest.raises(ConfigError, match=r"set env.mode=single"):
        run_items(env, env.all_items()[:1], "", bench.context(session))
    assert session.calls == [] and isinstance(env, TaskEnv)


def test_a_coding_agent_writes_the_program(bench: Any, own_env: Callable[..., Any], tmp_path: Path) -> None:
    cli = fake_codex(tmp_path / "bin", fenced(SOLVE))
    env = own_env(PAIR, answer_position="A1")
    with closing(Session({"target": cli_role("codex_exec", cli)})) as session:
        result = run_items(env, env.all_items()[:1], "- my rule", bench.context(session))[0]
    assert (result.error, result.hard, result.n_turns) == ("", 1.0, 1)
    seen = cli.calls[0].files
    assert {"input.xlsx", "run_solution.py", "task.md"} <= set(seen) and not any("answer" in name for name in seen)
    assert "- my rule" in result.target_system_prompt and "solution.py" in result.target_user_prompt
    assert "A1=1 | B1=5" in seen["task.md"] and "agent_trace" in result.extras


def test_a_coding_agent_can_try_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    (tmp_path / "run_solution.py").write_bytes(Path(run_solution.__file__).read_bytes())
    (tmp_path / "input.xlsx").write_bytes(b"in")
    program = tmp_path / "solution.py"

    def attempt(code: str) -> int:
        program.write_text(code, encoding="utf-8")
        argv = [sys.executable, "run_solution.py"]
        return run_process(argv, cwd=tmp_path, env=dict(os.environ), timeout=30).code or 0

    assert attempt("pass") == 1
    assert attempt("raise ValueError") == 1
    env = "import os, pathlib\nout = [os.environ.get('OPENAI_API_KEY'), os.environ['HOME'] == os.getcwd()]\n"
    env += "out.append(os.environ['TMPDIR'] != os.getcwd())\npathlib.Path(OUTPUT_PATH).write_text(repr(out))\n"
    assert attempt(env) == 0
    assert (tmp_path / "output.xlsx").read_text(encoding="utf-8") == "[None, True, True]"


def test_only_step_by_step_work_needs_tools() -> None:
    assert SpreadsheetBenchEnv(mode="react").needs == {"tools"}
    assert SpreadsheetBenchEnv().needs == frozenset()
    assert (SpreadsheetBenchEnv().one_call(), SpreadsheetBenchEnv(mode="multi").one_call()) == (True, False)


def test_the_published_comparison_is_a_setting(own_env: Callable[..., Any]) -> None:
    books = {"1_a_input.xlsx": {"S": [("x",)]}, "1_a_answer.xlsx": {"S": [(1,)]}}
    code = HEAD + "book.worksheets[0]['A1'] = True\n" + TAIL
    scores = {}
    for scoring in ("strict", "paper"):
        env = own_env(books, {"scoring": scoring}, answer_position="A1")
        scores[scoring] = env.score(env.all_items()[0], code).hard
    assert scores == {"strict": 0.0, "paper": 1.0}  # there TRUE counts as 1


@pytest.mark.parametrize("mode", ["strict", "paper"])
def test_the_right_workbooks_pass_and_the_inputs_fail(sample_env: Callable[..., Any], mode: Any) -> None:
    env = sample_env()
    for item in env.all_items():
        task = env._task(item)
        for case in task.cases:
            assert grade(task, case, Run(case.gold), mode, lambda: None).passed
            assert not grade(task, case, Run(case.source), mode, lambda: None).passed


def test_each_workbook_is_read_once_for_score_and_report(
    sample_env: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import openpyxl

    env = sample_env(limit=1)
    task = env._task(env.all_items()[0])
    load, loaded = openpyxl.load_workbook, []
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *args, **more: loaded.append(1) or load(*args, **more))
    verdict = grade(task, task.cases[0], Run(task.cases[0].gold), "strict", lambda: None)
    assert "Case 1: PASS" in verdict.text() and len(loaded) == 2
    for _ in range(3):
        env.messages(env.all_items()[0], "skill")
    assert len(loaded) == 3  # and one preview for all rollouts
