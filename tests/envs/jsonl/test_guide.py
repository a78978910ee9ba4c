"""The examples of docs/guide/bring-your-own-data.md work as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillopt.config.resolve import resolve
from skillopt.envs.registry import accepted_keys, make_adapter
from skillopt.envs.runner import run_batch
from skillopt.scoring import get_scorer

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "bring-your-own-data.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tasks.csv").write_text(blocks("csv")[0], "utf-8")
    (tmp_path / "SKILL.md").write_text(blocks("markdown")[0], "utf-8")
    (tmp_path / "tasks.yaml").write_text(blocks("yaml")[0], "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file(folder: Path, bench: Any) -> None:
    config = resolve(folder / "tasks.yaml", command="train")
    env: Any = make_adapter(config.flat())
    env.setup(config.flat())
    session = bench.session(lambda text, _: "Hm. <answer>Oslo</answer>")
    batch = env.get_dataloader().build_eval_batch(0, "train", 1)
    results = run_batch(env, batch, "# Skill", bench.context(session), folder)
    assert {result.predicted_answer for result in results} == {"Oslo"}
    assert session.seen[0].messages[0]["content"] == "You read letters.\n\n# Skill"


def test_its_keys_are_those_of_the_environment() -> None:
    keys = {key for block in blocks("yaml") for key in yaml.safe_load(block)["env"]}
    assert keys - {"name", "skill_init"} <= accepted_keys("jsonl")


def test_the_scorer_options() -> None:
    env = yaml.safe_load(blocks("yaml")[1])["env"]
    assert get_scorer(env["scorer"], **env["scorer_options"])("101", ["100"]).hard == 1


def test_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Any) -> None:
    (tmp_path / "guide_env.py").write_text(blocks("python")[0], "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "words.csv").write_text("word\n" + "\n".join(["abc", "def", "ghi"]) + "\n", "utf-8")
    env: Any = make_adapter({"env": "guide_env:Reverse", "data_path": str(tmp_path / "words.csv")})
    env.setup({})
    session = bench.session(lambda text, _: text.split("'")[1][::-1])
    batch = env.get_dataloader().build_eval_batch(0, "val", 1)
    (result,) = run_batch(env, batch, "s", bench.context(session), tmp_path)
    assert result.hard == 1
