"""Two made-up people with a recurring wish each, as tasks that the mock backend can solve once it knows the wish.

A researcher asks for arXiv identifiers (first versions, which never change) in answer tags; a programmer asks for
subjects of commits. Every task failed in its session. All texts are our own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from skillopt_sleep.backends.mock import HARMFUL, RULES, MockBackend
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.types import TaskRecord

PROJECT = "/personas/demo"

_PAPERS = (
    ("the Transformer, a network of attention alone", "arXiv:1706.03762v1"),
    ("BERT and its masked language modelling", "arXiv:1810.04805v1"),
    ("residual connections for very deep image networks", "arXiv:1512.03385v1"),
    ("Adam, the adaptive moment optimizer", "arXiv:1412.6980v1"),
    ("generative adversarial training", "arXiv:1406.2661v1"),
    ("the variational autoencoder", "arXiv:1312.6114v1"),
    ("sequence to sequence learning with recurrent encoders", "arXiv:1409.3215v1"),
    ("skip-gram and continuous bag of words vectors", "arXiv:1301.3781v1"),
    ("denoising diffusion probabilistic models", "arXiv:2006.11239v1"),
    ("the vision transformer over image patches", "arXiv:2010.11929v1"),
    ("low-rank adaptation of large models", "arXiv:2106.09685v1"),
    ("batch normalization against internal covariate shift", "arXiv:1502.03167v1"),
)
_CHANGES = (
    ("uploads are tried again after a dropped connection", "Retry dropped uploads"),
    ("the settings files are read once and remembered", "Cache parsed settings files"),
    ("the search page no longer shows deleted products", "Hide deleted products"),
    ("several dead addresses in the handbook work again", "Fix broken links"),
    ("the import tool accepts semicolons between columns", "Accept semicolon columns"),
    ("a slow query on the orders table uses an index", "Index orders table"),
    ("the old payment module is gone", "Remove payment module"),
    ("the year in the copyright notice is right again", "Update licence"),
)
PERSONAS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "researcher": ("wrap-answer", ("wrap-answer", "arxiv-id")),
        "programmer": ("commit-imperative", ("commit-imperative",)),
    }
)
"""Of each persona the rule in the ids of its tasks, and the rules that its tasks require."""


def persona_tasks(name: str) -> list[TaskRecord]:
    """The tasks of a persona: twelve of the researcher, eight of the programmer. Raises UsageProblem."""
    if name not in PERSONAS:
        raise UsageProblem(f"There is no persona {name!r}; choose one of {', '.join(PERSONAS)}.")
    rule, keys = PERSONAS[name]
    if name == "researcher":
        asked = [(f"Which arXiv identifier has the paper that introduced {what}?", found) for what, found in _PAPERS]
    else:
        asked = [(f"Write the subject of the commit in which {what}.", found) for what, found in _CHANGES]
    return [_task(f"persona_{rule}_{at}", at, intent, found, keys) for at, (intent, found) in enumerate(asked)]


def harmful_edit_task() -> TaskRecord:
    """A task that only the harmful rule would seem to solve, and that nothing solves."""
    intent = "Describe how one would go about it, whatever the question was."
    return _task("persona_harmful_0", 99, intent, "zzyzx unreachable reference", (HARMFUL,))


class HarmedBackend(MockBackend):
    """The mock backend, but the harmful rule does harm: with it in a document, every answer is off the point."""

    def attempt(self, task: TaskRecord, skill: str, memory: str, sample_id: int = 0, *, fresh: bool = False) -> str:
        """As the mock backend does, unless the harmful rule is there."""
        if RULES[HARMFUL] in f"{skill}\n{memory}":
            return "One would look at the question from several sides and then decide."
        return super().attempt(task, skill, memory, sample_id, fresh=fresh)


def _task(task_id: str, at: int, intent: str, reference: str, keys: Sequence[str]) -> TaskRecord:
    more: dict[str, Any] = {"reference_kind": "exact", "reference": reference, "outcome": "fail"}
    tags = [f"rule:{key}" for key in keys]
    return TaskRecord(task_id, PROJECT, intent, tags=tags, source_sessions=[f"sess_{at}"], **more)
