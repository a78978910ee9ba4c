"""The end of an epoch: long-term guidance for the target (slow update), notes for the optimizer (meta skill).

Both look at the same training items under the skill as it was when the last such work came to something, and under the
skill as it is now. Like a step, it is a function from progress to progress: the caller commits what it returns, and
when it is run again after a kill, finished calls and rollouts come from the store.

The skill gets its slow update region when there is guidance to put into it, not before: an empty region would change
the prompt of the target, and the score with it, for nothing. The end of the first epoch, which has nothing to compare
yet, is recorded as `inject_placeholder` and leaves the skill as it is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from skillopt.engine.epoch_memory import NO_CHANGE, NO_CONTENT, Memory, load_memory, render_meta_context
from skillopt.engine.epoch_pairs import Comparison, compare_skills, sample_seed
from skillopt.engine.gating import Candidate, gate_score, look
from skillopt.engine.kit import SELECTION, Kit
from skillopt.engine.leaks import REFUSED, find_leaks, leak_advice, leak_reasons
from skillopt.engine.metering import MeteredSession
from skillopt.engine.state import Progress, Standing
from skillopt.optimizer.comparison import category_counts
from skillopt.optimizer.epoch_advice import Advice, EpochChange
from skillopt.optimizer.meta_skill import run_meta_skill
from skillopt.optimizer.slow_update import run_slow_update, with_guidance
from skillopt.skill.document import Skill
from skillopt.types import JsonObject, Usage
from skillopt.utils.files import atomic_write_json, atomic_write_text, read_text

__all__ = ["EpochEnd", "Memory", "end_epoch", "load_memory", "render_meta_context"]


_NOTHING_SPENT: JsonObject = {"tokens": {"calls": 0, "prompt_tokens": 0, "completion_tokens": 0}}


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Which epoch ends. `epoch` counts from 1 to `epochs`; `seed` is that of the run."""

    epoch: int
    epochs: int
    seed: int


def end_epoch(kit: Kit, progress: Progress, epoch: EpochEnd, memory: Memory) -> tuple[Progress, Memory]:
    """Do the work at the end of an epoch and write its files; the caller commits the returned progress.

    What becomes current here has been scored on the selection split, with or without the gate's consent. Raises
    TooManyErrorsError, BudgetExceededError, InterruptedRunError and fatal ModelErrors; everything finished by then is
    in the store and is not done again.
    """
    started = time.monotonic()
    work = _Work(kit, epoch, memory, progress.current.skill)
    slow: JsonObject | None = None
    meta: JsonObject | None = None
    if kit.config.optimizer.use_slow_update:
        progress, slow = _slow_update(work, progress)
    if kit.config.optimizer.use_meta_skill:
        meta = _meta_skill(work)
    atomic_write_text(kit.folder.epoch_skill(epoch.epoch), progress.current.skill.text)
    wall_time_s = progress.wall_time_s + time.monotonic() - started
    return replace(progress, epochs_closed=epoch.epoch, wall_time_s=wall_time_s), memory.after(epoch.epoch, slow, meta)


@dataclass(slots=True)
class _Work:
    """What both parts share. `before` is the skill as the epoch's last step left it."""

    kit: Kit
    epoch: EpochEnd
    memory: Memory
    before: Skill
    _compared: dict[int, Comparison] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """The epoch that ends."""
        return self.epoch.epoch

    def previous(self, base: int) -> Skill:
        """The skill that the epoch after `base` started from."""
        folder = self.kit.folder
        return Skill.parse(read_text(folder.epoch_skill(base) if base else folder.skill(0)), self.before.files)

    def compare(self, base: int, out_dir: Path) -> tuple[Comparison, Usage]:
        """The comparison with the skill of `base`, and what it took; nothing when the slow update made it already."""
        if base in self._compared:
            return self._compared[base], Usage()
        seed = sample_seed(self.epoch.seed, self.number)
        compared = compare_skills(self.kit, self.previous(base), self.before, seed=seed, out_dir=out_dir)
        self._compared[base] = compared
        return compared, compared.usage


def _slow_update(work: _Work, progress: Progress) -> tuple[Progress, JsonObject]:
    kit, number, base = work.kit, work.number, work.memory.slow_base
    started, out_dir = time.monotonic(), kit.folder.slow_update(number)
    if number == 1:
        result: JsonObject = {
            "action": "inject_placeholder",
            "origin": f"slow_update_placeholder_epoch_{number:02d}",
            "note": "The region is written with its first guidance; until then the skill stays as it is.",
        }
    elif work.previous(base).same_as(work.before):
        result = {"action": NO_CHANGE, "compared_with_epoch": base}
    else:
        progress, result = _guide(work, progress, base, out_dir)
    kit.emit("phase", name="EPOCH END slow update", detail=result["action"])
    result = {"epoch": number, **_NOTHING_SPENT, **result, "time_s": round(time.monotonic() - started, 3)}
    atomic_write_json(kit.folder.slow_result(number), result)
    return progress, result


def _guide(work: _Work, progress: Progress, base: int, out_dir: Path) -> tuple[Progress, JsonObject]:
    """Compare, ask for guidance, and put it into the current skill."""
    kit, current = work.kit, work.before
    kit.emit("phase", name="EPOCH END compare", detail=f"the skill after epoch {base} with the current one")
    compared, usage = work.compare(base, out_dir)
    optimizer = MeteredSession(kit.session)
    change = EpochChange(work.previous(base), current, compared.pairs)
    advice = run_slow_update(change, session=optimizer, refused=work.memory.refused, env=kit.config.env.name)
    result = {"action": NO_CONTENT, **_asked(advice, "slow_update_content", compared, base)}
    usage += optimizer.usage
    if advice.content:
        candidate = with_guidance(current, advice.content)
        atomic_write_text(out_dir / "candidate_skill.md", candidate.text)
        result |= {
            "candidate_hash": candidate.hash,
            "update_origin": "slow_update_momentum",
            "update_target": "slow_update",
        }
        progress, fields, took = _offer(work, progress, candidate, out_dir / "selection_eval")
        result |= fields
        usage += took
    return progress, {**result, "tokens": _tokens(usage)}


def _offer(work: _Work, progress: Progress, skill: Skill, out_dir: Path) -> tuple[Progress, JsonObject, Usage]:
    """Leave the skill away when it says nothing new or holds what it must not; else score and install it."""
    kit = work.kit
    if skill.same_as(work.before):
        return progress, {"action": NO_CHANGE}, Usage()
    if leaks := find_leaks(kit, skill, work.before):
        reasons = list(leak_reasons(leaks))
        kit.emit("leak_refused", step=progress.step, found=reasons)
        fields = {"action": REFUSED, "leak_reasons": reasons, "leak_advice": list(leak_advice(leaks))}
        return progress, fields, Usage()
    return _install(work, progress, skill, out_dir)


def _install(work: _Work, progress: Progress, skill: Skill, out_dir: Path) -> tuple[Progress, JsonObject, Usage]:
    """Score the skill with its new guidance, and make it current: by the gate, or whatever its score is."""
    kit = work.kit
    path = kit.folder.relative(kit.folder.epoch_skill(work.number))
    candidate = Candidate(skill, path, f"slow_update_epoch_{work.number:02d}", progress.step)
    if kit.config.optimizer.slow_update_gate_with_selection:
        after, seen = look(kit, progress, candidate, out_dir)
        return after, {**seen.record(kit.config.evaluation.gate_metric), "action": seen.action}, seen.scored.usage
    scored = kit.evaluate(skill, SELECTION, purpose="slow update", out_dir=out_dir)
    score, metric = gate_score(kit, (scored.hard, scored.soft), skill), kit.config.evaluation.gate_metric
    fields: JsonObject = {
        "action": "force_accept",
        "origin": candidate.origin,
        "selection_hard": round(scored.hard, 6),
        "selection_soft": round(scored.soft, 6),
        "selection_errors": scored.n_errors,
        "gate_metric": metric,
        "candidate_gate_score": round(score, 6),
    }
    kit.emit(
        "gate",
        action="force_accept",
        metric=metric,
        current=progress.current.score,
        candidate=score,
        best=progress.best.score,
    )
    standing = Standing(skill, score, candidate.origin, path, scored)
    return replace(progress, current=standing), fields, scored.usage


def _meta_skill(work: _Work) -> JsonObject:
    kit, number, base = work.kit, work.number, work.memory.meta_base
    started, out_dir = time.monotonic(), kit.folder.meta_skill(number)
    result: JsonObject
    if number == 1:
        result = {"action": "skip_first_epoch"}
    elif work.previous(base).same_as(work.before):
        result = {"action": NO_CHANGE, "compared_with_epoch": base}
    else:
        result = _note(work, base, out_dir)
    kit.emit("phase", name="EPOCH END meta skill", detail=result["action"])
    result = {"epoch": number, **_NOTHING_SPENT, **result, "time_s": round(time.monotonic() - started, 3)}
    atomic_write_json(kit.folder.meta_result(number), result)
    return result


def _note(work: _Work, base: int, out_dir: Path) -> JsonObject:
    compared, usage = work.compare(base, out_dir)
    kit, optimizer = work.kit, MeteredSession(work.kit.session)
    change = EpochChange(work.previous(base), work.before, compared.pairs)
    advice = run_meta_skill(change, session=optimizer, memory=work.memory.meta_skill, env=kit.config.env.name)
    return {
        "action": "write_meta_skill" if advice.content else NO_CONTENT,
        **_asked(advice, "meta_skill_content", compared, base),
        "tokens": _tokens(usage + optimizer.usage),
    }


def _asked(advice: Advice, key: str, compared: Comparison, base: int) -> JsonObject:
    return {
        "reasoning": advice.reasoning,
        key: advice.content,
        "compared_with_epoch": base,
        "n_pairs": len(compared.pairs),
        "pair_categories": category_counts(compared.seen),
        "prev_hard": _rounded(compared.prev_hard),
        "curr_hard": _rounded(compared.curr_hard),
        "calls": advice.calls,
        "errors": list(advice.errors),
    }


def _tokens(usage: Usage) -> JsonObject:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
