"""One epoch on the sample bulletins: a target that really looks figures up, and learns to convert them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from sample_runs import ROOT, SampleRun, text_of

from skillopt.testing import chat_completion

RULE = "- Convert every figure to the unit that the question asks for before you answer."
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"


def call_tools(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(wanted)
    ]
    return chat_completion("", finish_reason="tool_calls", tool_calls=calls)


def play(request: Mapping[str, Any]) -> str | dict[str, Any]:
    """Lists the documents, greps the row and the months in each, then answers from what the tools said."""
    results = [str(m["content"]) for m in request["messages"] if m["role"] == "tool"]
    question = re.search(r"## Question\n\n(.+)", text_of(request, "user"))
    assert question is not None
    asked = question[1].split("what ", 1)[-1]
    label = re.search(r"(?:from|debt in) ([A-Z][a-z]+(?: and)?(?: [a-z]+)?)(?= in| at| change)", question[1])
    assert label is not None
    if not results:
        return call_tools(("glob", {"pattern": "*velmora*"}))
    if len(results) == 1:
        wanted = [(path, text) for path in results[0].splitlines() for text in (label[1], " | ", "Total", "thousands")]
        return call_tools(*[("grep", {"pattern": text, "path": path}) for path, text in wanted])
    value = compute(question[1], asked, results[1:])
    rule = RULE in text_of(request, "system")
    if "per cent" in question[1]:
        return f"<answer>{value * 100:.1f}%</answer>" if rule else f"<answer>{value:.3f}</answer>"
    return f"<answer>{value / 1000:.2f} million</answer>" if rule else f"<answer>{value:,.0f}</answer>"


def compute(question: str, asked: str, found: Sequence[str]) -> float:
    """The figure that is asked for, in the unit of the tables."""
    rows: dict[str, list[float]] = {"row": [], "total": []}
    months: list[str] = []
    for start in range(0, len(found), 4):
        row, table, total, unit = found[start : start + 4]
        assert "In thousands of crowns" in unit
        head = re.search(rf"({MONTH}) \| ({MONTH}) \| ({MONTH})", table)
        assert head is not None
        months += head.groups()
        rows["row"] += numbers(row)
        rows["total"] += numbers(total)
    names = re.findall(MONTH, re.sub(r"bulletins? of [^,]+(?:and [^,]+)?,", "", question))
    values = [rows["row"][months.index(name)] for name in names]
    if "share" in question:
        return values[0] / rows["total"][months.index(names[0])]
    if "change" in question:
        return values[1] - values[0]
    return sum(values)


def numbers(line: str) -> list[float]:
    return [float(cell.replace(",", "")) for cell in line.splitlines()[0].split(" | ")[1:]]


class ToolRun(SampleRun):
    """A run whose target calls tools."""

    def _reply(self, request: Mapping[str, Any], target: Any, rule: str) -> Any:
        if request["model"] != "target-model" or "Reply with: ok" in text_of(request, "user"):
            return super()._reply(request, target, rule)
        return play(request)


def run(tmp_path: Path) -> ToolRun:
    return ToolRun("officeqa", tmp_path / "run", target=lambda *_: "", rule=RULE)


DOCS = {"data_dirs": [str(ROOT / "data" / "samples" / "officeqa" / "docs")]}


def test_one_epoch_on_the_sample_bulletins_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    ran = run(tmp_path)
    trained = ran.train(**DOCS)
    assert (trained.baseline, trained.score, trained.test_baseline, trained.test_score) == (0.0, 1.0, 0.0, 1.0)
    assert trained.skill.rstrip().endswith(RULE)
    analyst = next(body for body in ran.asked("optimizer-model") if "Trajectories (" in text_of(body, "user"))
    assert "`retrieval_miss`" in text_of(analyst, "system")
    shown = text_of(analyst, "user")
    assert "[action] grep" in shown and "In thousands of crowns." in shown and "Hidden reference" in shown


def test_the_paper_s_formula_and_the_right_pages_train_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OFFICEQA_DOCS_DIR", raising=False)
    ran = run(tmp_path)
    assert ran.train(**DOCS, scoring="paper", retrieval="oracle", limit=2).score == 1.0
    assert "| Harbour dues |" in text_of(ran.asked("target-model")[0], "user")
