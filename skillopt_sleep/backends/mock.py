"""A backend that calls nothing and always does the same: it learns six fixed rules from tasks that are tagged for them.

A task that is tagged `rule:<key>` is solved once the sentence of that key stands in the skill or the memory. It shows
the whole night, gate included, without a model and without a cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from skillopt_sleep.backends.base import Backend, Pairs, target_of
from skillopt_sleep.judges.exact import exact_score, keyword_soft_score
from skillopt_sleep.judges.rule import score_rule_judge
from skillopt_sleep.types import EditRecord, TaskRecord

HARMFUL = "__harmful__"
RULES: Mapping[str, str] = MappingProxyType(
    {
        "wrap-answer": "Put the final answer between <answer> and </answer> tags, alone.",
        "arxiv-id": "Name every paper by its full arXiv identifier, version included.",
        "commit-imperative": "Start the subject of a commit with a verb in the imperative.",
        "units-si": "Give every quantity in SI units, with the unit.",
        "json-only": "When JSON is asked for, answer with the JSON alone.",
        HARMFUL: "Leave out the final answer and describe the way to it instead.",
    }
)
"""The sentence of each rule key."""

_TAG = "rule:"
_OFF_FORMAT = "Here is how one might go about it, in no particular form."
_NO_REFERENCE = "The task is done as it was described."
_ASKS_FOR = ("./{tool}", "use {tool}", "run {tool}", "call {tool}", "must {tool}")


class MockBackend(Backend):
    """See the module. Nothing is sent, so nothing is metered and `tokens_used` stays 0."""

    name = "mock"
    has_tools = True

    def __init__(self, model: str = "", **options: Any) -> None:
        super().__init__(model, **options)

    def attempt(
        self,
        task: TaskRecord,
        skill: str,
        memory: str,
        sample_id: int = 0,  # noqa: ARG002 - the same answer every time
        *,
        fresh: bool = False,  # noqa: ARG002
    ) -> str:
        """The reference when every sentence that the task requires is in skill or memory, else a near miss."""
        keys = required_keys(task)
        if HARMFUL in keys:
            return _OFF_FORMAT
        context = f"{skill}\n{memory}"
        if keys and task.reference and all(RULES[key] in context for key in keys):
            found = task.reference
            return f"The result is <answer>{found}</answer>." if "wrap-answer" in keys else found
        if task.reference:
            nearly = task.reference[:-2] if len(task.reference) > 3 else "unknown"
            return f"approximately {nearly} (format not applied)"
        return _NO_REFERENCE

    def attempt_with_tools(
        self,
        task: TaskRecord,
        skill: str,
        memory: str,
        tools: Sequence[str],
        sample_id: int = 0,
        *,
        fresh: bool = False,
    ) -> tuple[str, list[str]]:
        """As `attempt`; a tool is called when skill or memory say in so many words to use it."""
        context = f"{skill}\n{memory}".lower()
        called = [tool for tool in tools if any(form.format(tool=tool.lower()) in context for form in _ASKS_FOR)]
        return self.attempt(task, skill, memory, sample_id, fresh=fresh), called

    def judge(
        self,
        task: TaskRecord,
        response: str,
        *,
        fresh: bool = False,  # noqa: ARG002
    ) -> tuple[float, float, str]:
        """By rule, by reference, or, without one, by how the task went when the person had it."""
        if task.reference_kind == "rule":
            return score_rule_judge(task.judge, response)
        if task.reference_kind == "exact" and task.reference:
            hard = exact_score(task.reference, response)
            soft = max(hard, keyword_soft_score(task.reference, response))
            return hard, soft, "the reference is there" if hard >= 1 else "the reference is not there"
        if task.reference_kind == "rubric" and task.reference:
            soft = keyword_soft_score(task.reference, response)
            return (1.0 if soft >= 0.8 else 0.0), soft, f"{soft:.2f} of the rubric's words are there"
        hard = 1.0 if task.outcome == "success" else 0.0
        return hard, hard, f"the session's outcome: {task.outcome}"

    def reflect(
        self,
        failures: Pairs,
        successes: Pairs,  # noqa: ARG002
        skill: str,
        memory: str,
        *,
        edit_budget: int,
        evolve_skill: bool,
        evolve_memory: bool,
    ) -> list[EditRecord]:
        """One `add` for each sentence that a failed task requires and that is nowhere yet."""
        if not (evolve_skill or evolve_memory):
            return []
        context = f"{skill}\n{memory}"
        target = target_of(evolve_skill=evolve_skill)
        wanted: dict[str, EditRecord] = {}
        for task, _ in failures:
            for key in required_keys(task):
                sentence = RULES[key]
                if sentence not in context and sentence not in wanted and len(wanted) < edit_budget:
                    wanted[sentence] = EditRecord(target, "add", sentence, "", f"task {task.id} requires {key}")
        return list(wanted.values())


def required_keys(task: TaskRecord) -> list[str]:
    """The known rule keys of a task's tags, in order."""
    keys = (tag[len(_TAG) :] for tag in task.tags if tag.startswith(_TAG))
    return list(dict.fromkeys(key for key in keys if key in RULES))
