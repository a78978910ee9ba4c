"""A small collection of documents, environments over it, and a target that follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.officeqa.adapter import OfficeQAEnv
from skillopt.envs.runner import RunContext, run_items
from skillopt.model.values import CompatToolCall, CompatToolFunction, ModelCall, ModelReply
from skillopt.types import Item, RoleConfig, RolloutResult, Usage
from skillopt.utils.cancel import CancelToken

Step = Callable[[ModelCall], "ModelReply | str"]


def calls(*wanted: tuple[str, Any], text: str = "") -> ModelReply:
    """A reply that asks for tools: (name, arguments as an object or as text)."""
    made = [
        CompatToolCall(f"c{n}", CompatToolFunction(name, given if isinstance(given, str) else json.dumps(given)))
        for n, (name, given) in enumerate(wanted)
    ]
    return ModelReply(text, "tool_calls", Usage(1, 10, 2), tool_calls=tuple(made))


class ScriptedSession:
    """Plays `steps` one after the other, the last one again and again; `seen` holds what it was asked."""

    def __init__(self, *steps: Step | ModelReply | str, backend: str = "openai_compatible") -> None:
        self.roles = {"target": RoleConfig("target", backend, "m")}
        self.seen: list[ModelCall] = []
        self._steps = steps

    def call(self, role: str, call: ModelCall, *, cancel: CancelToken | None = None, **_: Any) -> ModelReply:
        step = self._steps[min(len(self.seen), len(self._steps) - 1)]
        self.seen.append(call)
        reply = step(call) if callable(step) else step
        return reply if isinstance(reply, ModelReply) else ModelReply(reply, usage=Usage(1, 10, 2))


def told(session: ScriptedSession) -> list[str]:
    """What the tools answered, as the last call showed it."""
    return [str(m["content"]) for m in session.seen[-1].messages if m["role"] == "tool"]


def row(**changes: Any) -> dict[str, Any]:
    base = {
        "uid": "u1",
        "question": "How many tons?",
        "ground_truth": "1,234 million",
        "category": "easy",
        "source_files": ["a.txt"],
        "source_docs": ["https://docs.example/a?page=3"],
    }
    return {**base, **changes}


def write_docs(folder: Path) -> Path:
    texts = folder / "docs" / "transformed"
    (texts / "old").mkdir(parents=True)
    (texts / "a.txt").write_text("Title\nCoal | 1,234\nNote: in MILLIONS\n", encoding="utf-8")
    (texts / "b.txt").write_text("Coal | 99\n", encoding="utf-8")
    (texts / "old" / "c.txt").write_text("".join(f"line {n}\n" for n in range(1, 201)), encoding="utf-8")
    table = "<table><tr><th>Kind</th><th>Tons</th></tr><tr><td>Coal|Coke</td><td>1,234</td></tr></table>"
    elements = [
        {"type": "title", "content": "Coal", "bbox": [{"page_id": 3}]},
        {"type": "table", "content": table, "bbox": [{"page_id": 3}, {"page_id": 4}]},
        {"type": "text", "content": "elsewhere", "bbox": [{"page_id": 5}]},
    ]
    jsons = folder / "docs" / "jsons"
    jsons.mkdir()
    (jsons / "a.json").write_text(json.dumps({"document": {"elements": elements}}), encoding="utf-8")
    return folder / "docs"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return write_docs(tmp_path)


@pytest.fixture
def make_env(tmp_path: Path, docs: Path) -> Callable[..., OfficeQAEnv]:
    def make(rows: Sequence[Mapping[str, Any]] | None = None, **keys: Any) -> OfficeQAEnv:
        for split in ("train", "val", "test"):
            folder = tmp_path / "splits" / split
            folder.mkdir(parents=True, exist_ok=True)
            given = rows if rows is not None and split == "train" else [row(uid=f"{split}-1", question=f"{split}?")]
            (folder / "items.json").write_text(json.dumps(list(given)), encoding="utf-8")
        cfg = {name: keys.pop(name) for name in ("target_backend",) if name in keys}
        settings = {"split_dir": str(tmp_path / "splits"), "data_dirs": [str(docs)], "retrieval": "restricted", **keys}
        env = OfficeQAEnv(**settings)
        env.setup(cfg)
        return env

    return make


def do(
    env: OfficeQAEnv, session: Any, skill: str = "- Be exact.", item: Item | None = None, **more: Any
) -> RolloutResult:
    """The first training item, done with the session."""
    item = item or env.get_dataloader().items("train")[0]
    settings = {"item_timeout": 20, "item_retries": 0, **more}
    return run_items(env, [item], skill, RunContext(session, **settings))[0]


@pytest.fixture
def play() -> Callable[..., RolloutResult]:
    return do


@pytest.fixture
def officeqa() -> Any:
    """The helpers of this folder, for tests that need them by name."""
    return type("Helpers", (), {
        "calls": staticmethod(calls), "Session": ScriptedSession, "told": staticmethod(told), "row": staticmethod(row),
    })  # fmt: skip
