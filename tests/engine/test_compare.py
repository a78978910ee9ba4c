"""`Kit.compare`: any batch against the current skill's results on it, ended when the verdict is certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gate_worlds import Draw, ScriptedTasks, make_kit, settings
from gate_worlds import with_section as section

from skillopt.datasets.base import BatchSpec
from skillopt.engine.kit import Kit
from skillopt.evaluation.early_stop import gains
from skillopt.evaluation.evaluate import Evaluation
from skillopt.skill.document import Skill

OLD = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def fixed(**scores: list[int | None]) -> Draw:
    def draw(text: str, item: str) -> tuple[float, float] | None:
        value = scores[text][int(item.split("-")[1])]
        return None if value is None else (float(value), float(value))

    return draw


def tried(root: Path, new: list[int | None], **evaluation: Any) -> tuple[Evaluation, Evaluation]:
    config = section(settings(**evaluation), "env", workers=1, item_retries=0, max_error_rate=0.5)
    adapter = ScriptedTasks(10, fixed(old=list(OLD), new=new))
    kit: Kit = make_kit(adapter, config, root)
    batch = BatchSpec("train", "train", 3, 10, adapter.loader.rows)
    old = Skill.parse("old")
    before = Evaluation.of(old.hash, "train", kit.rollout(batch, old, root / "rollout"))
    after = kit.compare(Skill.parse("new"), batch, before, purpose="screening", out_dir=root / "trial")
    return before, after


@pytest.mark.parametrize(
    ("new", "gain", "evaluated"),
    [
        ([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], False, 6),  # nothing gained: the current failures are enough to know
        ([1, 1, 1, 1, 1, 1, 1, 1, 1, 1], True, 9),  # five gained against four that can be lost: certain
        ([0, 1, 1, 1, 1, 0, 0, 0, 0, 0], False, 7),
        ([0, 1, 1, 1, 1, 1, 0, 0, 0, 0], True, 10),
        ([None, 1, 1, 1, 1, 0, 0, 0, 0, 0], True, 10),  # an error: all items are run, and the common ones decide
        ([None, 0, 1, 1, 1, 0, 0, 0, 0, 0], False, 10),
    ],
)
def test_verdicts(tmp_path: Path, new: list[int | None], gain: bool, evaluated: int) -> None:
    before, after = tried(tmp_path / "exact", new)
    assert gains(before, after) is gain
    assert len(after.results) <= evaluated
    before, whole = tried(tmp_path / "off", new, early_stop="off")
    assert gains(before, whole) is gain
    assert whole.complete
    assert whole.decided == ("won" if gain else "lost")
