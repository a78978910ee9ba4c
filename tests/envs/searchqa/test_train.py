"""One epoch on the sample data: the rule on the form of answers is learned and pays on the test items."""

from __future__ import annotations

import json
from pathlib import Path

from sample_runs import SampleRun, sample_items, text_of

NAME = "searchqa"
RULE = "- Write the bare name or number between the tags, without a sentence around it."
GOLD = {
    item["question"]: item["answers"][0] for split in ("train", "val", "test") for item in sample_items(NAME, split)
}


def answer(system: str, user: str) -> str:
    """Finds the answer where it stands: in the documents of the prompt."""
    gold = GOLD[user.split("## Question\n\n")[1]]
    if gold not in user:
        return "<answer>unknown</answer>"
    return f"Found it. <answer>{gold}</answer>" if RULE in system else f"<answer>I think that it is {gold}.</answer>"


def test_one_epoch_on_the_sample_data_gains(tmp_path: Path) -> None:
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=RULE)
    trained = run.train()
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.skill.rstrip().endswith(RULE)
    initial = Path("skillopt/envs/searchqa/skills/initial.md").read_text(encoding="utf-8")
    assert trained.skill.startswith(initial.rstrip())
    buckets = json.loads((run.out_root / "test_eval" / "summary.json").read_text(encoding="utf-8"))
    assert buckets["qa"] == {"total": 5, "hard_acc": 1.0}
    analyst = next(body for body in run.asked("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "trivia questions from the snippets" in text_of(analyst, "system")
    assert "Hidden reference" in text_of(analyst, "user")


def test_a_part_of_the_words_counts_as_soft_score(tmp_path: Path) -> None:
    run = SampleRun(NAME, tmp_path / "run", target=answer, rule=RULE)
    trained = run.train(limit=3)
    assert 0 < trained.summary["baseline_selection_soft"] < trained.summary["best_selection_soft"] == 1.0


def test_an_answer_of_a_held_out_item_is_not_learned(tmp_path: Path) -> None:
    leak = "- The answer is: the very long bridge of Calder."
    for split in ("train", "val", "test"):
        items = sample_items(NAME, split)[:3]
        if split == "val":
            items[0]["answers"].append("The very long bridge of Calder")
        (tmp_path / "data" / split).mkdir(parents=True)
        (tmp_path / "data" / split / "items.json").write_text(json.dumps(items), encoding="utf-8")
    run = SampleRun(NAME, tmp_path / "run", target=lambda *_: "<answer>no</answer>", rule=leak)
    trained = run.train(split_dir=str(tmp_path / "data"))
    assert leak not in trained.skill
    history = json.loads((run.out_root / "history.json").read_text(encoding="utf-8"))
    assert history[0]["action"] == "reject_leak"
