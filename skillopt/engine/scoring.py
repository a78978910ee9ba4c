"""Score one skill on a split, outside of training, with the same evaluation, store and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillopt.config.run_config import RunConfig
from skillopt.datasets.base import canonical_split
from skillopt.engine import setup
from skillopt.engine.accounts import spending
from skillopt.engine.kit import Kit
from skillopt.engine.model_notes import data_notes, note_models
from skillopt.envs.base import EnvAdapter
from skillopt.evaluation.evaluate import Evaluation, buckets, write_results
from skillopt.scoring import compute_score
from skillopt.skill.document import Skill
from skillopt.tracking.events import Sink
from skillopt.types import JsonObject
from skillopt.utils.cancel import CancelToken
from skillopt.utils.files import atomic_write_json

ALL_SPLITS = ("train", "val", "test")


def score_skill(
    config: RunConfig,
    skill: Skill,
    split: str,
    *,
    name: str = "",
    adapter: EnvAdapter | None = None,
    sinks: Sequence[Sink] = (),
    stop: CancelToken | None = None,
) -> JsonObject:
    """Score `skill` and return what is written to `eval_summary.json`. `name`: what it is called there.

    `split`: `train`, `valid_seen`, `valid_unseen`, another name of these, or `all` for the three together (whole,
    whatever `evaluation.test_env_num` says). Raises SkillOptError as `train` does.
    """
    names = ALL_SPLITS if split == "all" else (canonical_split(split),)
    adapter = adapter or setup.prepare(config)
    with setup.open_kit(config, adapter, sinks=sinks, stop=stop) as kit:
        setup.write_config(kit, {"skill": name, "split": split})
        kit.session.preflight("target")
        limit = 0 if split == "all" else config.evaluation.test_env_num
        parts = [
            kit.evaluate(skill, part, purpose=part, out_dir=kit.folder.root / "splits" / part, limit=limit)
            for part in names
        ]
        whole = _joined(parts, split)
        write_results(kit.folder.root, whole.results)
        summary = _summary(kit, whole, {"skill": name, "skill_hash": skill.hash, "split": split})
        atomic_write_json(kit.folder.root / "eval_summary.json", summary)
        return summary


def _summary(kit: Kit, whole: Evaluation, what: JsonObject) -> JsonObject:
    """`what` was scored, and how it did: the form of `eval_summary.json`."""
    return {
        **what,
        "n_items": len(whole.results),
        "n_errors": whole.n_errors,
        "hard": round(whole.hard, 6),
        "soft": round(whole.soft, 6),
        "by_task_type": buckets(whole, kit.adapter.get_task_types()),
        "usage": whole.usage.to_dict(),
        **spending(kit.session.usage),
        "model_notes": note_models(kit),
        "notices": data_notes(kit),
    }


def _joined(parts: Sequence[Evaluation], split: str) -> Evaluation:
    if len(parts) == 1:
        return parts[0]
    results = tuple(result for part in parts for result in part.results)
    hard, soft = compute_score([result for result in results if result.ok])
    return replace(parts[0], split=split, results=results, hard=hard, soft=soft)
