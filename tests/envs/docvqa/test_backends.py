"""A target that takes no images is refused before any call; a coding agent gets the page as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sample_runs import ROOT

import skillopt
from skillopt.config.resolve import resolve
from skillopt.engine.setup import prepare
from skillopt.envs.base import EnvAdapter
from skillopt.envs.docvqa.adapter import DocVQAEnv
from skillopt.envs.runner import RunContext, run_items
from skillopt.errors import ConfigError
from skillopt.model.session import Session
from skillopt.testing.agents import fake_codex
from skillopt.testing.cli import cli_role


def config(tmp_path: Path, **model: Any) -> dict[str, Any]:
    model = {"backend": "openai_compatible", "openai_compatible_base_url": "http://127.0.0.1:9/v1", **model}
    env = {"split_dir": str(ROOT / "data" / "samples" / "docvqa"), "out_root": str(tmp_path / "run")}
    return {"_base_": str(ROOT / "configs" / "docvqa" / "sample.yaml"), "model": model, "env": env}


@pytest.mark.parametrize("backend", ["mock_chat", "local_chat"])
def test_a_target_that_takes_no_images_is_refused_at_the_start(tmp_path: Path, backend: str) -> None:
    with pytest.raises(ConfigError, match=rf"env\.name=docvqa sends images, which the backend {backend}.*openai_chat"):
        skillopt.train(config(tmp_path, target_backend=backend))
    assert not (tmp_path / "run").exists()


def test_the_optimizer_needs_no_eyes(tmp_path: Path) -> None:
    prepare(resolve(config(tmp_path, optimizer_backend="mock_chat")))


def test_other_environments_need_nothing() -> None:
    assert EnvAdapter.needs == frozenset()


def test_a_coding_agent_gets_the_page_as_a_file_and_the_skill_as_its_own(tmp_path: Path) -> None:
    cli = fake_codex(tmp_path, "It says <answer>4,064.65</answer>")
    env = DocVQAEnv(split_dir=str(ROOT / "data" / "samples" / "docvqa"))
    env.setup({})
    with Session({"target": cli_role("codex_exec", cli, "target")}) as session:
        item = env.get_dataloader().items("train")[0]
        (result,) = run_items(env, [item], "- Copy the value.", RunContext(session, item_timeout=60))
    assert (result.error, result.hard, env.runs_agents()) == ("", 1.0, True)
    given = cli.calls[0].files
    assert "attachments/01_image.png" in given["ATTACHMENTS.md"] and "IHDR" in given["attachments/01_image.png"]
    assert "Question: What is the total amount" in given["task.md"]
    assert "- Copy the value." not in given["task.md"] and str(ROOT) not in "".join(given.values())
    assert given[".agents/skills/skillopt-target/SKILL.md"].rstrip().endswith("- Copy the value.")
    assert "base64" not in str(result.to_dict())
