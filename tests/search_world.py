"""A world to search in: twelve hidden rules, each worth a twelfth of the items, and an optimizer that often errs.

The target answers an item right if and only if the skill holds the rule of the item's topic and no habit that breaks
it. For each topic that an analyst sees fail, the optimizer proposes the missing rule, but one proposal in four is a new
habit instead, which breaks one or two topics and helps none. Only scores tell the two apart: what a habit has broken
the optimizer does not see. All answers follow from the request and the world's seed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOPICS = (
    "amber basalt cobalt dolomite emerald feldspar garnet hematite iolite jasper kyanite lapis".split()  # noqa: SIM905
)
HARMFUL_SHARE = 0.25
TWO_BROKEN_SHARE = 0.5  # of the habits; the others break one topic
_NOTHING_TO_ADD = json.dumps({"reasoning": "all said", "slow_update_content": "", "meta_skill_content": ""})
_ASKED = re.compile(r"the seal of (\w+) in volume (\d+)")
_HABIT = re.compile(r"- Habit ([0-9a-f]+): [^\n]*")
_PATCH = re.compile(r"<<<patch (\w+)\n(.*?)\n\1 patch>>>", re.DOTALL)
_SKILL = re.compile(r"<<<skill (\w+)\n(.*?)\n\1 skill>>>", re.DOTALL)
_LISTED = re.compile(r"^\[(\d+)\] (?:.*?support (\d+))?", re.MULTILINE)


def write_data(folder: Path, *, train: int = 120, val: int = 100, test: int = 200) -> None:
    """Split folders in which the topics take turns."""
    for split, number in {"train": train, "val": val, "test": test}.items():
        items = [
            {
                "id": f"{split}-{n}",
                "question": f"[{split}] What is the seal of {TOPICS[n % len(TOPICS)]} in volume {n}?",
                "answer": _seal(TOPICS[n % len(TOPICS)], n),
                "task_type": TOPICS[n % len(TOPICS)],
            }
            for n in range(number)
        ]
        (folder / split).mkdir(parents=True, exist_ok=True)
        (folder / split / "items.json").write_text(json.dumps(items), encoding="utf-8")


def rule(topic: str) -> str:
    """The line that makes a topic's items right."""
    return f"- Rule {topic}: name the mineral, then the number of the volume."


def broken_by(habit: str) -> tuple[str, ...]:
    """The topics that a habit breaks, by the habit's digits."""
    first, second = int(_digest("first", habit), 16), int(_digest("second", habit), 16)
    topics = TOPICS[first % len(TOPICS)], TOPICS[second % len(TOPICS)]
    return tuple(sorted(set(topics))) if _unit("two", habit) < TWO_BROKEN_SHARE else topics[:1]


def solved(skill: str) -> frozenset[str]:
    """The topics whose items are right under a skill."""
    broken = {topic for habit in _HABIT.findall(skill) for topic in broken_by(habit)}
    return frozenset(topic for topic in TOPICS if f"- Rule {topic}:" in skill and topic not in broken)


def test_score(skill: str, test: int = 200) -> float:
    """The score of a skill on the test split."""
    right = solved(skill)
    return sum(TOPICS[n % len(TOPICS)] in right for n in range(test)) / test


@dataclass(frozen=True)
class SearchWorld:
    """Both models of the world with one seed.

    `repair`: how often the optimizer sees which habit broke a topic and proposes to strike it. `noise`: how often the
    target's answer to an item turns into its opposite, drawn anew for each skill. Both are 0 in the plain world.
    """

    seed: int
    repair: float = 0.0
    noise: float = 0.0

    def answer(self, request: Mapping[str, Any]) -> str:
        """The reply to a Chat Completions request; the model's name says which role is asked."""
        texts = {m["role"]: str(m["content"]) for m in request["messages"]}
        system, user = texts.get("system", ""), texts.get("user", "")
        if "Reply with: ok" in user:
            return "ok"
        return self.target(system, user) if request["model"] == "target-model" else self.optimizer(system, user)

    def target(self, system: str, user: str) -> str:
        """The answer to an item under the skill in `system`."""
        asked = _ASKED.search(user)
        assert asked is not None, user
        right = asked[1] in solved(system)
        if _unit("noise", self.seed, system, user) < self.noise:
            right = not right
        return _seal(asked[1], int(asked[2])) if right else "not known"

    def optimizer(self, system: str, user: str) -> str:
        """The reply of the optimizer to any of its prompts."""
        if "selected_indices" in system:
            return self._rank(user)
        if "## Trajectories (" in user:
            return self._analyse(user)
        if _PATCH.search(user):
            return self._merge(user)
        return _NOTHING_TO_ADD

    def _analyse(self, user: str) -> str:
        head, _, shown = user.partition("## Trajectories (")
        budget = re.search(r"at most (\d+) edits", head)
        if "all of them failed" not in shown:
            return _patch([])
        skill = _shown_skill(head)
        failing = Counter(topic for topic, _ in set(_ASKED.findall(shown)))
        ordered = sorted(failing, key=lambda topic: (-failing[topic], topic))
        edits = [self._propose(topic, skill, shown) for topic in ordered]
        return _patch(edits[: int(budget[1])] if budget else edits)

    def _propose(self, topic: str, skill: str, shown: str) -> dict[str, str]:
        volumes = sorted(set(_ASKED.findall(shown)))
        draw = ("proposal", self.seed, topic, skill, volumes)
        if _unit(*draw) < HARMFUL_SHARE:
            return {"op": "append", "content": f"- Habit {_digest(*draw)[:12]}: mention the colour as well."}
        if f"- Rule {topic}:" not in skill:
            return {"op": "append", "content": rule(topic)}
        guilty = [line for line in _HABIT.finditer(skill) if topic in broken_by(line[1])]
        if guilty and _unit("seen", *draw) < self.repair:
            return {"op": "delete", "target": guilty[0][0]}
        return {"op": "append", "content": rule(topic)}

    def _merge(self, user: str) -> str:
        merged: dict[str, dict[str, Any]] = {}
        for _, text in _PATCH.findall(user):
            for edit in json.loads(text)["edits"]:
                name = edit.get("content") or edit.get("target")
                support = edit.get("support_count") or 1
                if name in merged:
                    merged[name]["support_count"] += support
                else:
                    merged[name] = {**edit, "support_count": support}
        return json.dumps({"reasoning": "one list", "edits": list(merged.values())})

    def _rank(self, user: str) -> str:
        support = {int(index): int(number or 1) for index, number in _LISTED.findall(user)}
        ordered = sorted(support, key=lambda index: (-support[index], _unit("rank", self.seed, index, user)))
        return json.dumps({"reasoning": "most support first", "selected_indices": ordered})


def _patch(edits: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"failure_summary": [], "patch": {"reasoning": "gaps", "edits": list(edits)}})


def _shown_skill(text: str) -> str:
    found = _SKILL.search(text)
    return found[2] if found else ""


def _seal(topic: str, number: int) -> str:
    return f"{topic} {number}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _unit(*parts: object) -> float:
    return int(_digest(*parts)[:12], 16) / 16**12
