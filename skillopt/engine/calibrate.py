"""How noisy is the target on this data, and how often would the gate accept by chance? The skill, run twice, tells.

Both runs are draws of the selection split as training makes them, kept in the store of the run folder: training in the
same folder finds the first one done.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from skillopt.config.run_config import RunConfig
from skillopt.engine import setup
from skillopt.engine.extent import extent_of
from skillopt.engine.kit import SELECTION, Kit
from skillopt.envs.base import EnvAdapter
from skillopt.errors import RunError
from skillopt.evaluation.evaluate import Evaluation, common_items, compare
from skillopt.evaluation.stats import ErrorBudget, false_accept_rates
from skillopt.skill.document import Skill
from skillopt.tracking.events import Sink
from skillopt.types import JsonObject
from skillopt.utils.cancel import CancelToken
from skillopt.utils.files import atomic_write_json


def calibrate(
    config: RunConfig,
    *,
    adapter: EnvAdapter | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> JsonObject:
    """Run the initial skill twice on the selection split and return what is written to `calibration/summary.json`.

    `false_accept` gives, for both policies of the gate, how often one look at a candidate that is no better accepts
    it, and how often at least one of the planned looks of a run does. Raises SkillOptError as `train` does.
    """
    adapter = adapter or setup.prepare(config)
    skill = setup.initial_skill(config)
    with setup.open_kit(config, adapter, sinks=sinks, stop=stop) as kit:
        kit.session.preflight("target")
        draws = config.env.samples_per_item
        first, second = (_run(kit, skill, number * draws) for number in range(2))
        report = _report(kit, first, second)
        atomic_write_json(_folder(kit) / "summary.json", report)
        return report


def _folder(kit: Kit) -> Path:
    return kit.folder.root / "calibration"


def _run(kit: Kit, skill: Skill, first_sample: int) -> Evaluation:
    folder = _folder(kit) / f"sample_{first_sample}"
    evaluator = kit.evaluator(SELECTION, skill, first_sample=first_sample)
    return evaluator.evaluate(skill, SELECTION, purpose=f"calibrate, sample {first_sample}", out_dir=folder)


def _report(kit: Kit, first: Evaluation, second: Evaluation) -> JsonObject:
    settings, one, two = kit.config.evaluation, first.graded, second.graded
    shared = common_items(first, second)
    if not shared:
        raise RunError("calibrate: no item was graded in both runs; see `skillopt show`.")
    differences = [
        kit.gate_score((two[item].hard, two[item].soft)) - kit.gate_score((one[item].hard, one[item].soft))
        for item in shared
    ]
    looks = extent_of(kit.config, kit.adapter).looks
    share = ErrorBudget(settings.gate_alpha).share(looks)
    strict, paired = false_accept_rates(differences, share, seed=kit.config.train.seed)
    return {
        "skill_hash": first.skill_hash,
        "items": len(shared),
        "errors": first.n_errors + second.n_errors,
        "gate_metric": settings.gate_metric,
        "hard": [round(first.hard, 6), round(second.hard, 6)],
        "soft": [round(first.soft, 6), round(second.soft, 6)],
        "share_of_items_that_differ": round(sum(abs(d) > 1e-9 for d in differences) / len(shared), 6),
        "sd_of_differences": round(statistics.pstdev(differences, mu=0.0), 6),
        "comparison": compare(first, second, measure=kit.gate_score).to_dict(),
        "planned_looks": looks,
        "gate_alpha": settings.gate_alpha,
        "gate_share": float(f"{share:.6g}"),
        "false_accept": {"strict": _rates(strict, looks), "paired": _rates(paired, looks)},
    }


def _rates(per_look: float, looks: int) -> JsonObject:
    """Of one look, and of a run whose looks err independently."""
    per_run = -math.expm1(looks * math.log1p(-per_look)) if per_look < 1 else 1.0
    return {"per_look": float(f"{per_look:.6g}"), "per_run": float(f"{per_run:.6g}")}
