"""An optimizer without a language model: it writes training examples, with their references, into the skill.

That is all it does, and it says so: it needs items that have references, it reads the failed training items handed to
it, and it answers each stage with the JSON that a language model would give, so that everything after it is the normal
path. It never sees validation or test items. For a small completion model, a few worked examples are often worth more
than any rule (bootstrapped few-shot prompting; DSPy's BootstrapFewShot is the best known of its kind).

- `analyst`: edits that append worked examples, each the item's user prompt followed by its reference, so that the
  skill's text is a pattern to continue. Chosen for variety: kinds of task and answers that the skill lacks first, then
  the shortest. With the setting `rules`, also one rule for each kind of task whose references share a shape.
- `merge`: the edits without repetitions, the most various first.
- `ranking`: the most various edits, as many as the budget allows.
- any other stage: an empty answer, "nothing to change".

Settings: `demos_per_edit`, `max_demos` (most worked examples in the skill), `rules` (off: a rule confused the small
model more than it helped). No randomness: the same evidence gives the same reply.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from skillopt.model.values import CallContext, Material, ModelCall, ModelReply
from skillopt.types import Edit, JsonObject, RoleConfig, RolloutResult, Usage

REFERENCE_SEPARATOR = " | "
"""Between the accepted answers of one item in `RolloutResult.reference_text`; the first one is shown."""

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LABEL = re.compile(r"[a-z][a-z_-]*")
_MAX_LABELS = 6
_MIN_REFERENCES = 3  # references of one kind of task before a shape of theirs is believed


@dataclass(frozen=True, slots=True)
class Demo:
    """A worked example: `text` is a user prompt followed by its reference, `kind` the task type."""

    text: str
    kind: str
    reference: str
    item_id: str


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """Answer a stage from `call.material`. Raises what `ctx.cancel` raises, nothing else."""
    if ctx.cancel is not None:
        ctx.cancel.raise_if_cancelled()
    material = call.material or Material()
    body: JsonObject
    if call.stage == "analyst":
        body = analyse(material, role)
    elif call.stage == "merge":
        body = merge(material)
    elif call.stage == "ranking":
        body = rank(material)
    else:
        body = {"reasoning": "This optimizer only adds worked examples.", "edits": [], "selected_indices": []}
    text = json.dumps(body, ensure_ascii=False)
    return ModelReply(text=text, finish_reason="stop", usage=Usage(calls=1), model=role.model)


def analyse(material: Material, role: RoleConfig) -> JsonObject:
    """The analyst's reply: at most `material.budget` edits that append worked examples (and rules, if asked for)."""
    per_edit = max(1, int(role.settings.get("demos_per_edit") or 1))
    most = int(role.settings.get("max_demos") or 4)
    demos = [demo for demo in map(demo_of, material.failures) if demo is not None]
    fresh = [demo for demo in demos if demo.text not in material.skill]
    contents = _rules(material) if role.settings.get("rules") else []
    contents = contents[: material.budget]
    room = min(max(0, most - count_demos(material.skill, demos)), per_edit * (material.budget - len(contents)))
    chosen = pick_demos(fresh, room, material.skill)
    groups = [chosen[start : start + per_edit] for start in range(0, len(chosen), per_edit)]
    contents += ["\n\n".join(demo.text for demo in group) for group in groups]
    edits = [Edit("append", content, source_type="failure", support_count=1).to_dict() for content in contents]
    return {
        "batch_size": len(material.failures) + len(material.successes),
        "failure_summary": _failure_summary(material.failures),
        "patch": {"reasoning": "Worked examples of failed training items.", "edits": edits},
    }


def merge(material: Material) -> JsonObject:
    """The merge's reply: each edit once, with the support of its repetitions, the most various first."""
    first: dict[tuple[str, str, str], Edit] = {}
    for edit in material.edits:
        key = (edit.op, edit.target, edit.content)
        known = first.get(key)
        support = (edit.support_count or 1) + ((known.support_count or 1) if known else 0)
        first[key] = replace(known or edit, support_count=support)
    edits = list(first.values())
    order = pick_various([edit.content for edit in edits], len(edits), material.skill)
    return {"reasoning": "Repetitions joined.", "edits": [edits[index].to_dict() for index in order]}


def rank(material: Material) -> JsonObject:
    """The ranking's reply: `material.budget` numbers of edits, the most various first."""
    order = pick_various([edit.content for edit in material.edits], material.budget, material.skill)
    return {"reasoning": "Kinds of task and answers that the skill lacks come first.", "selected_indices": order}


def demo_of(result: RolloutResult) -> Demo | None:
    """The worked example of an item, or None when it has no prompt or no reference in one line."""
    reference = result.reference_text.split(REFERENCE_SEPARATOR)[0].strip()
    prompt = (result.target_user_prompt or result.question).lstrip("\n")
    if not reference or "\n" in reference or not prompt.strip():
        return None
    gap = "" if prompt[-1].isspace() else " "
    return Demo(f"{prompt}{gap}{reference}", result.task_type, reference, result.id)


def count_demos(skill: str, demos: Sequence[Demo]) -> int:
    """How many worked examples the skill holds.

    Counted by the last line of the prompts ("Answer:") when they share it, else every paragraph counts as one.
    """
    endings = {_last_line_stem(demo) for demo in demos}
    stem = endings.pop() if len(endings) == 1 else ""
    if stem:
        return sum(line.startswith(stem) for line in skill.splitlines())
    return sum(bool(paragraph.strip()) for paragraph in re.split(r"\n\s*\n", skill))


def pick_demos(demos: Sequence[Demo], count: int, skill: str) -> list[Demo]:
    """At most `count` demos: kinds not chosen yet first, then lines that the skill lacks, then the shortest."""
    ordered = sorted(demos, key=lambda demo: (len(demo.text), demo.text, demo.item_id))
    distinct = list({demo.text: demo for demo in ordered}.values())
    texts = [f"{demo.text}\nkind {demo.kind}" if demo.kind else demo.text for demo in distinct]
    return [distinct[index] for index in pick_various(texts, count, skill)]


def pick_various(texts: Sequence[str], count: int, skill: str) -> list[int]:
    """Numbers of at most `count` texts, chosen one by one: the one whose lines were seen least, earlier ones first.

    Seen are the lines of the skill and of the texts chosen before. Items of one kind share lines ("Field: city"), and
    so do items with one answer: little overlap means a new kind of task or a new answer.
    """
    seen = Counter(_lines(skill))
    left = list(range(len(texts)))
    chosen: list[int] = []
    while left and len(chosen) < count:
        best = min(left, key=lambda index: (sum(seen[line] for line in set(_lines(texts[index]))), index))
        left.remove(best)
        chosen.append(best)
        seen.update(_lines(texts[best]))
    return chosen


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _last_line_stem(demo: Demo) -> str:
    return demo.text.splitlines()[-1].removesuffix(demo.reference).rstrip()


def _rules(material: Material) -> list[str]:
    """One rule for each kind of task whose references share a shape, unless the skill has it already."""
    references: dict[str, list[str]] = {}
    for result in (*material.failures, *material.successes):
        demo = demo_of(result)
        if demo is not None and demo.kind:
            references.setdefault(demo.kind, []).append(demo.reference)
    shapes = ((kind, _shape(values)) for kind, values in sorted(references.items()))
    rules = [f"- {kind}: {shape}." for kind, shape in shapes if shape]
    return [rule for rule in rules if rule not in material.skill]


def _shape(references: Sequence[str]) -> str:
    """What the references have in common, in words; empty when nothing is certain enough."""
    if len(references) < _MIN_REFERENCES:
        return ""
    if _all_match(_ISO_DATE, references):
        return "answer in the form YYYY-MM-DD"
    labels = sorted(set(references))
    repeated = len(labels) <= _MAX_LABELS and len(labels) < len(references)
    if repeated and len(labels) > 1 and _all_match(_LABEL, labels):
        return f"answer with one of: {', '.join(labels)}"
    return ""


def _all_match(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    return all(pattern.fullmatch(text) for text in texts)


def _failure_summary(failures: Sequence[RolloutResult]) -> list[JsonObject]:
    counts = Counter(result.task_type for result in failures)
    return [
        {
            "failure_type": kind or "wrong answer",
            "count": count,
            "description": "The answer differs from the reference.",
        }
        for kind, count in sorted(counts.items())
    ]
