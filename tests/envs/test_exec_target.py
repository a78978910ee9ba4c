"""Environments with a coding agent as target: what the agent is given, what becomes of its answer, a whole training."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import given_time
from worlds import TOPICS, World, answer, answer_optimizer

from skillopt.config.resolve import resolve
from skillopt.engine.setup import prepare
from skillopt.engine.trainer import train
from skillopt.envs.base import TaskEnv
from skillopt.envs.benchmark import BenchmarkEnv
from skillopt.envs.chat import Chat
from skillopt.envs.exec_target import AgentAnswer, is_exec_target, run_agent
from skillopt.envs.runner import RunContext, run_items
from skillopt.errors import ConfigError, DataError
from skillopt.model.harness.prompt import EMPTY_NOTE
from skillopt.model.harness.workspace import SKILL_PATH
from skillopt.model.limiter import Limits
from skillopt.model.session import Session
from skillopt.scoring import Score
from skillopt.testing import FakeCli, ScriptedModel, cli_role, codex_turn, fake_codex, fake_cursor
from skillopt.types import Item, JsonObject, RolloutResult, Usage
from skillopt.utils.cancel import CancelToken

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

PNG = "data:image/png;base64,iVBORw0KGgo="
QUICK = Limits(retry_first_wait_seconds=0.001)


class Cities(TaskEnv):
    """Asks for a city; the picture is shown with the question."""

    def get_task_types(self) -> list[str]:
        return []

    def messages(self, item: Item, skill: str) -> list[JsonObject]:
        picture = {"type": "image_url", "image_url": {"url": PNG}}
        text = {"type": "text", "text": str(item.data["question"])}
        return [
            {"role": "system", "content": f"Name the city. {skill}".strip()},
            {"role": "user", "content": [text, picture] if item.data.get("picture") else [text]},
        ]

    def score(self, item: Item, answer: str) -> Score:
        return Score(float(answer == "Paris"), float(answer == "Paris"), "")


class Rounds(Cities, BenchmarkEnv):
    """The same, with a second round for a reply without an answer."""

    def __init__(self) -> None:
        self.max_turns = 2

    run_item = BenchmarkEnv.run_item
    runs_agents = BenchmarkEnv.runs_agents

    def check(self, item: Item) -> None: ...

    def answered(self, reply_text: str) -> bool:
        return "?" not in reply_text


class OwnWay(Cities):
    """Has its own way to run an item."""

    def run_item(self, item: Item, skill: str, chat: Chat) -> RolloutResult:
        return super().run_item(item, skill, chat)


def session_of(cli: FakeCli, backend: str = "codex_exec", **settings: Any) -> Session:
    return Session({"target": cli_role(backend, cli).with_settings(**settings)}, limits=QUICK)


def one(
    env: TaskEnv, session: Session, skill: str = "Say Paris.", *, timeout: float = 60, **data: Any
) -> RolloutResult:
    item = Item.from_dict({"id": "a", "question": "Where is the tower?", **data})
    (result,) = run_items(env, [item], skill, RunContext(session, item_timeout=timeout, item_retries=0))
    return result


def test_an_agent_is_told_from_a_chat_model(tmp_path: Path) -> None:
    chat = ScriptedModel(["x"]).role()
    for session, expected in ((session_of(fake_codex(tmp_path)), True), (Session({"target": chat}), False)):
        assert is_exec_target(Chat(session, CancelToken())) is expected


def test_run_agent_gives_the_task_and_returns_answer_trace_usage_and_files(tmp_path: Path) -> None:
    cli = FakeCli(tmp_path, "codex", codex_turn("done", leaves={"solution.py": "print(1)\n"}))
    chat = Chat(session_of(cli), CancelToken(60))
    done = run_agent(
        chat,
        task="Write it.",
        skill="Be exact.",
        files={"data.csv": "a,b\n"},
        outputs=["solution.py"],
        allow_file_edits=True,
        preamble="Tables.",
    )
    assert isinstance(done, AgentAnswer)
    assert (done.text, done.files, done.usage) == ("done", {"solution.py": "print(1)\n"}, Usage(1, 11, 5, 3, 2))
    assert "codex\ndone" in done.trace and "sandbox: workspace-write" in done.summary
    assert chat.usage == done.usage
    (call,) = cli.calls
    assert (call.files["task.md"], call.files["data.csv"]) == ("Write it.\n", "a,b\n")
    assert "Tables." in call.files[SKILL_PATH] and "Be exact." in call.files[SKILL_PATH]


def test_what_is_denied_is_not_given(tmp_path: Path) -> None:
    gold = tmp_path / "data" / "gold"
    gold.mkdir(parents=True)
    cli = fake_codex(tmp_path / "bin")
    chat = Chat(session_of(cli), CancelToken(60))
    with pytest.raises(DataError, match="may not be given this"):
        run_agent(chat, task="t", skill="s", data_dirs=[tmp_path / "data"], denied=[gold])
    assert cli.calls == ()


def test_the_prompt_of_an_environment_is_the_task_and_the_skill_a_file(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Paris")
    result = one(Cities(), session_of(cli), picture=True)
    (call,) = cli.calls
    assert result.ok and result.hard == 1.0 and result.predicted_answer == "Paris"
    assert call.files["task.md"] == "Name the city.\n\n---\n\nWhere is the tower?\n[Attached image 1]\n"
    assert "Say Paris." in call.files[SKILL_PATH] and "Say Paris." not in call.files["task.md"] + call.stdin
    assert str(call.value("-i")).endswith("attachments/01_image.png")
    assert result.target_system_prompt == "Name the city." and result.usage == Usage(1, 11, 5, 3, 2)
    assert "codex\nParis" in result.extras["agent_trace"] and "codex_trace_summary" not in result.extras


@pytest.mark.parametrize(("asked", "kept"), [(True, True), (False, False)])
def test_the_optimizer_sees_a_summary_of_the_trace_when_asked(tmp_path: Path, asked: bool, kept: bool) -> None:
    env = Cities()
    env.setup({"codex_trace_to_optimizer": asked})
    result = one(env, session_of(fake_codex(tmp_path, "Paris")))
    assert ("codex_trace_summary" in result.extras) is kept


def test_a_second_round_keeps_question_and_answer_in_a_new_folder(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "Rome?", "Paris")
    result = one(Rounds(), session_of(cli))
    first, second = cli.calls
    assert result.hard == 1.0 and result.n_turns == 2 and first.cwd != second.cwd
    assert first.files["task.md"] == "Name the city.\n\n---\n\nWhere is the tower?\n"
    for words in ("Name the city.", "- User: Where is the tower?", "- Assistant: Rome?", "Check your work"):
        assert words in second.files["task.md"]


@pytest.mark.parametrize("fault", [{"hang": True}, {"code": 3, "stdout": "Paris", "stderr": "broke"}, {"error": "no"}])
def test_a_failed_agent_is_an_error_and_no_score(tmp_path: Path, fault: Mapping[str, Any]) -> None:  # W12
    def failed(seconds: float) -> tuple[FakeCli, RolloutResult, str]:
        cli = fake_codex(tmp_path / str(seconds), "Paris", **fault)
        limit = seconds if "hang" in fault else 60.0
        return cli, one(Cities(), session_of(cli), timeout=limit), f"DeadlineError: not finished within {limit:g} s"

    cli, result, late = given_time(failed, lambda made: bool(made[0].calls))
    assert (result.status, result.hard, result.predicted_answer) == ("error", 0.0, "")
    assert (late in result.error) == ("hang" in fault)
    assert len(cli.calls) == 1 and cli.survivors == ()


def test_an_empty_answer_is_asked_for_again_and_never_a_trace(tmp_path: Path) -> None:
    cli = fake_cursor(tmp_path, "", "Paris")
    result = one(Cities(), session_of(cli, "cursor_exec"))
    assert result.hard == 1.0 and EMPTY_NOTE in cli.calls[1].stdin
    silent = one(Cities(), session_of(fake_cursor(tmp_path / "b", ""), "cursor_exec"))
    assert silent.status == "error" and "SilentAgentError" in silent.error


def test_who_runs_items_in_another_way_says_so_itself() -> None:
    assert (Cities().runs_agents(), Rounds().runs_agents(), OwnWay().runs_agents()) == (True, True, False)


def agent_world(make_world: Callable[..., World], cli: FakeCli, backend: str = "codex_exec") -> World:
    def reply(request: Mapping[str, Any]) -> str:
        return answer(request) if "Reply with: ok" in json.dumps(request) else answer_optimizer(request)

    world = make_world(reply)
    path = "codex_exec_path" if backend == "codex_exec" else "cursor_exec_path"
    world.overrides["model"] = {
        "backend": None,
        "optimizer_backend": "openai_compatible",
        "target_backend": backend,
        path: str(cli.path),
        "codex_trace_to_optimizer": True,
    }
    world.overrides["train"] = {"num_epochs": 1, "batch_size": 6, "seed": 7}
    world.overrides["gradient"] = {"minibatch_size": 8}
    world.overrides["optimizer"] = {"learning_rate": 6}

    return world


def test_an_agent_is_trained_that_answers_better_with_a_rule_in_its_skill_file(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    rules = [codex_turn(f"{topic} secret", sees=(f"Rule {topic}:", f"about {topic}?")) for topic in TOPICS]
    cli = FakeCli(tmp_path / "bin", "codex", [*rules, codex_turn("no idea")])
    world = agent_world(make_world, cli)
    summary = train(resolve(world.config()))
    assert summary["baseline_selection_hard"] == 0.0
    assert summary["best_selection_hard"] == summary["test_hard"] == 1.0
    skill = (world.out_root / "best_skill.md").read_text("utf-8")
    assert all(f"- Rule {topic}:" in skill for topic in TOPICS)
    assert summary["token_summary"]["rollout"]["calls"] == len(cli.calls) - 1  # and a preflight
    prompts = [json.dumps(body, ensure_ascii=False) for body in world.requests("optimizer-model")]
    assert any("read SKILL.md: no" in prompt and "answer format: plain_text" in prompt for prompt in prompts)
    before = len(cli.calls)
    train(resolve(world.config()))
    assert len(cli.calls) == before


def test_an_environment_that_cannot_run_agents_refuses_them_up_front(
    make_world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skillopt.envs.jsonl.adapter import JsonlEnv

    cli = fake_codex(tmp_path / "bin")
    world = agent_world(make_world, cli)
    config = resolve(world.config())
    prepare(config)
    monkeypatch.setattr(JsonlEnv, "runs_agents", lambda _: False)
    with pytest.raises(ConfigError, match=r"env.name=jsonl cannot run a coding agent .* codex_exec .*is one") as caught:
        prepare(config)
    assert "\n" not in str(caught.value) and "cursor_exec" not in str(caught.value) and cli.calls == ()
    monkeypatch.setattr(JsonlEnv, "agents_with", "env.mode=single")
    with pytest.raises(ConfigError, match=r"set env.mode=single, or model.target_backend to one of"):
        prepare(config)
