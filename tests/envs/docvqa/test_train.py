"""One epoch on the sample pages: the real images arrive, and the rule on the form of answers is learned."""

from __future__ import annotations

import ast
import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from sample_runs import SampleRun, text_of

from skillopt.datasets.samples import docvqa as samples

pillow = pytest.importorskip("PIL.Image", reason='needs an image library: pip install "skillopt[docvqa]"')

RULE = "- Write the value alone between the tags, exactly as it is printed, without a sentence around it."


def digest(picture: Any) -> str:
    return hashlib.sha256(picture.convert("L").tobytes()).hexdigest()


SEEN = {
    (digest(samples.draw(sample.sheet)), sample.row["question"]): json.loads(sample.row["answer"])[0]
    for split in samples.samples().values()
    for sample in split
}


def read(system: str, user: str) -> str:
    """Looks at the page that was sent: only what is drawn on it can be answered."""
    image, text = ast.literal_eval(user)
    kind, _, data = image["image_url"]["url"].partition(",")
    assert kind == "data:image/png;base64"
    page = pillow.open(io.BytesIO(base64.b64decode(data, validate=True)))
    question = text["text"].removeprefix("Question: ").partition("\n")[0]
    value = SEEN.get((digest(page), question), "not on this page")
    return f"<answer>{value}</answer>" if RULE in system else f"<answer>The page says that it is {value}.</answer>"


def test_one_epoch_on_the_sample_pages_gains(tmp_path: Path) -> None:
    run = SampleRun("docvqa", tmp_path / "run", target=read, rule=RULE)
    trained = run.train()
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.skill.rstrip().endswith(RULE)
    buckets = json.loads((run.out_root / "test_eval" / "summary.json").read_text(encoding="utf-8"))
    assert buckets["table/list"] == {"total": 1, "hard_acc": 1.0}
    analyst = next(body for body in run.asked("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "scanned page" in text_of(analyst, "system")
    assert "[image page_0" in text_of(analyst, "user")
    assert "Hidden reference" in text_of(analyst, "user")


def test_no_picture_is_written_into_the_run_folder(tmp_path: Path) -> None:  # W27
    run = SampleRun("docvqa", tmp_path / "run", target=read, rule=RULE)
    run.train(limit=2)
    kept = {path.name: path.read_bytes() for path in run.out_root.rglob("*") if path.is_file()}
    assert len(kept) > 10
    assert not [name for name, data in kept.items() if b";base64," in data]
    assert b"page_01.png" in kept["store.sqlite"]


def test_the_paper_s_formula_trains_as_well(tmp_path: Path) -> None:
    run = SampleRun("docvqa", tmp_path / "run", target=read, rule=RULE)
    assert run.train(scoring="paper", limit=2).score == 1.0
