"""One epoch on the sample data: with shuffled choices, a rule on how to compare them is learned and pays."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sample_runs import SampleRun, sample_items, text_of

NAME = "livemathematicianbench"
RULE = "- Say how each choice differs from the others before judging any."
GOLD = {
    item["question"]: item["correct_choice"]["text"]
    for split in ("train", "val", "test")
    for item in sample_items(NAME, split)
}


def answer(system: str, user: str) -> str:
    """Picks a choice by its text, wherever it stands; without the rule the first wrong one."""
    question = user.split("## Question\n\n")[1].split("\n\n## Choices")[0]
    choices = re.findall(r"^([A-Z])\. (.*)$", user.split("## Choices\n\n")[1], re.MULTILINE)
    label = next(label for label, text in choices if (text == GOLD[question]) == (RULE in system))
    return f"So it must be this one. <answer>{label}</answer>"


def test_one_epoch_on_the_sample_data_gains(tmp_path: Path) -> None:
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=RULE)
    trained = run.train()
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.skill.rstrip().endswith(RULE)
    buckets = json.loads((run.out_root / "test_eval" / "summary.json").read_text(encoding="utf-8"))
    assert buckets["characterization"] == {"total": 1, "hard_acc": 1.0}
    assert buckets["overall"] == {"total": 4, "hard_acc": 1.0}
    analyst = next(body for body in run.asked("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "tell choices apart" in text_of(analyst, "system")
    assert "## Proof sketch" in text_of(analyst, "user")
    assert not any("## Proof sketch" in text_of(body, "user") for body in run.asked("target-model"))


def test_choices_are_shown_in_an_order_of_their_own(tmp_path: Path) -> None:
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=RULE)
    run.train(limit=3)
    item = sample_items(NAME, "val")[0]
    seen = {text_of(body, "user") for body in run.asked("target-model") if item["question"] in text_of(body, "user")}
    assert len(seen) == 1  # the same for the skill before and after
    assert all(choice["text"] in next(iter(seen)) for choice in item["choices"])


def test_a_theorem_of_a_held_out_item_is_not_learned(tmp_path: Path) -> None:
    leak = f"- Remember: {sample_items(NAME, 'val')[0]['theorem']}"
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=leak)
    assert leak not in run.train().skill
    history = json.loads((run.out_root / "history.json").read_text(encoding="utf-8"))
    assert history[0]["action"] == "reject_leak"
