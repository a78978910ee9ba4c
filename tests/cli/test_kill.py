"""A run with everything switched on, killed a hundred times, ends as if nobody had ever touched it."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from worlds import TOPICS, World, answer_target, text_of

from skillopt.skill.document import skill_hash
from skillopt.store import Store

KILLS = 100


def wise_optimizer(request: Mapping[str, Any]) -> str:
    """An optimizer for the rewrite mode, slow update, meta skill and appendix. Each reply names its own request."""
    system, user = text_of(request, "system"), text_of(request, "user")
    mark = hashlib.sha256((system + user).encode()).hexdigest()[:12]
    if "slow_update_content" in system:
        return json.dumps({"reasoning": mark, "slow_update_content": f"Name the stone before its secret. ({mark})"})
    if "meta_skill_content" in system:
        return json.dumps({"reasoning": mark, "meta_skill_content": f"Short rules help here. ({mark})"})
    if "selected_indices" in system:
        return json.dumps({"reasoning": mark, "selected_indices": [1, 0, 2, 3]})
    if "revise_suggestions" in system:
        return suggestions(user, mark)
    if "new_skill" in system:
        topics = [topic for topic in TOPICS if f"Rule {topic}" in user]
        body = (
            "# Stones\n\n" + "".join(f"- Rule {topic}: say its secret.\n" for topic in topics) + f"\nRevision {mark}.\n"
        )
        return json.dumps({"reasoning": mark, "change_summary": ["rules"], "new_skill": body})
    return json.dumps({"appendix_notes": [f"Say it plainly. ({mark})"]})


def suggestions(user: str, mark: str) -> str:
    if "Trajectories (" in user:
        seen = sorted(set(re.findall(r"about (\w+)\?", user.split("Trajectories (")[1])))
        items = [suggestion(topic) for topic in seen[:2]]
        return json.dumps(
            {
                "failure_summary": [{"failure_type": "gap", "count": 1, "description": mark}],
                "patch": {"reasoning": mark, "revise_suggestions": items},
                "appendix_notes": [f"Remember the stone. ({mark})"],
            }
        )
    items = [suggestion(topic) for topic in sorted(set(re.findall(r"Rule (\w+): say", user)))]
    return json.dumps({"reasoning": mark, "revise_suggestions": items})


def suggestion(topic: str) -> dict[str, Any]:
    return {
        "type": "add_rule",
        "title": f"Rule {topic}",
        "motivation": "it is missing",
        "instruction": f"Rule {topic}: say its secret.",
        "priority_hint": "high",
    }


def reply(request: Mapping[str, Any]) -> str:
    if "Reply with: ok" in text_of(request, "user"):
        return "ok"
    return answer_target(request) if request["model"] == "target-model" else wise_optimizer(request)


SECTIONS: dict[str, dict[str, Any]] = {
    "train": {"num_epochs": 3},
    "gradient": {"failure_only": False, "minibatch_size": 4},
    "optimizer": {
        "skill_update_mode": "rewrite_from_suggestions",
        "learning_rate": 2,
        "use_slow_update": True,
        "slow_update_samples": 8,
        "use_meta_skill": True,
        "use_skill_aware_reflection": True,
        "skill_aware_consolidate_threshold": 3,
    },
    "evaluation": {"early_stop": "exact"},
}


def kept(root: Path) -> tuple[set[tuple[str, str]], set[str]]:
    """(item, skill) of every stored rollout, and the texts of every stored reply."""
    if not (root / "store.sqlite").exists():
        return set(), set()
    store = Store(root / "store.sqlite")
    try:
        rollouts = {(result.id, hashed) for _, hashed, result in store.rollouts()}
        return rollouts, {str(payload["text"]) for _, payload in store.replies()}
    finally:
        store.close()


def again(world: World, since: int, rollouts: set[tuple[str, str]], replies: set[str]) -> list[str]:
    """Requests since number `since` for work that was already kept."""
    repeated = []
    for record in world.server.requests[since:]:
        if "messages" not in record.body:  # the kill came while the request was being sent
            continue
        user = text_of(record.body, "user")
        if "Reply with: ok" in user:
            continue
        if record.body["model"] == "target-model":
            item = user[1 : user.index("]")]
            if (item, skill_hash(text_of(record.body, "system"))) in rollouts:
                repeated.append(item)
        elif reply(record.body) in replies:
            repeated.append(user[:80])
    return repeated


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("timing", "wall_time_s", "time_s")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def outcome(root: Path) -> dict[str, Any]:
    """Everything about a run that a kill must not change."""
    summary = json.loads((root / "summary.json").read_text(encoding="utf-8"))
    scores = {
        k: v for k, v in summary.items() if re.search(r"_(hard|soft|score|step|n|errors|origin)$|^total_[ars]", k)
    }
    results = sorted([*root.glob("slow_update/*/slow_result.json"), *root.glob("meta_skill/*/*.json")])
    return {
        "best": (root / "best_skill.md").read_text(encoding="utf-8"),
        "history": timeless(json.loads((root / "history.json").read_text(encoding="utf-8"))),
        "scores": scores,
        "epochs": {str(p.relative_to(root)): timeless(json.loads(p.read_text(encoding="utf-8"))) for p in results},
    }


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(make_world: Callable[..., World]) -> None:
    world = make_world(reply, latency=0.004)
    train = [sys.executable, "-m", "skillopt.cli.train", "--config"]
    whole = world.root / "whole"
    path = str(world.config(**SECTIONS, env={"out_root": str(whole)}))
    assert subprocess.run([*train, path], capture_output=True, check=False).returncode == 0
    expected = outcome(whole)
    assert any("new_best" in record["action"] for record in expected["history"])
    path, moments = str(world.config(**SECTIONS)), random.Random(100)
    kills = 0
    while kills < KILLS:
        since, before = len(world.server.requests), kept(world.out_root)
        with subprocess.Popen([*train, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            wait_for(world, process, since + moments.randint(1, 9))
            time.sleep(moments.random() * 0.02)
            process.kill()
            process.wait()
        kills += 1
        assert not again(world, since, *before)
    since, before = len(world.server.requests), kept(world.out_root)
    done = subprocess.run([*train, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not again(world, since, *before)
    assert outcome(world.out_root) == expected


def wait_for(world: World, process: subprocess.Popen[bytes], requests: int) -> None:
    end = time.monotonic() + 60
    while len(world.server.requests) < requests and process.poll() is None:
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.001)
