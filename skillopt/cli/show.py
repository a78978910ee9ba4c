"""`skillopt show`: a run in a screen, or everything that is kept about one item."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, TextIO

from skillopt.cli.calibrate import calibrate_report
from skillopt.cli.common import DONE, print_json
from skillopt.cli.report import eval_report, spending_lines
from skillopt.engine.accounts import spending
from skillopt.engine.run_dir import RunDir
from skillopt.errors import DataError
from skillopt.model.usage import UsageTracker
from skillopt.store import Store
from skillopt.tracking.console import plain
from skillopt.types import JsonObject, RolloutResult
from skillopt.utils.files import read_json


def show_run(root: Path, out: TextIO, *, as_json: bool) -> int:
    """Print what a run, an evaluation or a calibration in `root` found. Raises DataError for any other folder."""
    folder = RunDir(root)
    if not folder.state.exists() and folder.store.exists():
        return _show_without_steps(root, out, as_json=as_json)
    state = _need(folder.state, root)
    history = read_json(folder.history) if folder.history.exists() else []
    summary = read_json(folder.summary) if folder.summary.exists() else None
    spent = _spending(folder)
    if as_json:
        print_json({"state": state, "history": history, "summary": summary, **spent}, out)
        return DONE
    done = "finished" if state.get("finished") else f"stopped after step {state['last_completed_step']}"
    out.write(f"{root}: {done}; best {state['best_score']:.4f} from {state['best_origin']}\n")
    out.write(f"  {'step':>4}  {'action':<16}{'rollout':>8}{'select':>8}{'current':>9}{'best':>7}{'edits':>7}\n")
    for record in history:
        out.write(_step_line(record))
    if summary and summary.get("test_hard") is not None:
        before, after = summary["baseline_test_hard"], summary["test_hard"]
        out.write(f"  test: {before:.4f} before, {after:.4f} after ({summary['test_n']} items)\n")
    out.writelines(f"{line}\n" for line in spending_lines(spent))
    return DONE


def _show_without_steps(root: Path, out: TextIO, *, as_json: bool) -> int:
    """A folder of `skillopt-eval` or `skillopt calibrate`, or a run whose baseline is not finished."""
    reports = {
        "eval_summary.json": lambda found: eval_report(found, str(root)),
        "calibration/summary.json": calibrate_report,
    }
    for name, report in reports.items():
        if (root / name).exists():
            found = read_json(root / name)
            print_json(found, out) if as_json else out.write(report(found))
            return DONE
    with contextlib.closing(Store(RunDir(root).store)) as store:
        number = sum(1 for _ in store.rollouts())
    if not as_json:
        out.writelines(f"{line}\n" for line in spending_lines(_spending(RunDir(root))))
    raise DataError(
        f"{root}: nothing is finished yet; {number} rollouts are kept, and the command that made them goes on."
    )


def show_item(root: Path, item_id: str, out: TextIO, *, as_json: bool) -> int:
    """Print every kept rollout of one item. Raises DataError, naming near ids, when there is none."""
    path = RunDir(root).store
    if not path.exists():
        raise DataError(f"{root}: holds no run (there is no {path.name}).")
    with contextlib.closing(Store(path)) as store:
        rows = list(store.rollouts(item_id))
        known = [] if rows else sorted({result.id for _, _, result in store.rollouts()})
    if not rows:
        raise DataError(f"{root}: no item {item_id!r} was run; {_near(item_id, known)}")
    if as_json:
        print_json([{"split": s, "skill_hash": h, **r.to_dict()} for s, h, r in rows], out)
        return DONE
    for split, skill_hash, result in rows:
        out.write(_item_text(split, skill_hash, result))
    return DONE


def _spending(folder: RunDir) -> JsonObject:
    """What was asked of the models until now, whether the run is finished or not."""
    if not folder.store.exists():
        return {}
    with contextlib.closing(Store(folder.store)) as store:
        return spending(UsageTracker(ledger=store))


def _need(path: Path, root: Path) -> JsonObject:
    if not path.exists():
        raise DataError(f"{root}: holds no run that has begun (there is no {path.name}).")
    value: JsonObject = read_json(path)
    return value


def _step_line(record: JsonObject) -> str:
    def number(key: str) -> str:
        value: Any = record.get(key)
        return "-" if value is None else f"{value:.4f}"

    edits = record.get("edit_apply_summary") or {}
    applied = f"{edits['applied']}/{edits['total']}" if edits else "-"
    return (
        f"  {record['step']:>4}  {record['action']:<16}{number('rollout_hard'):>8}{number('selection_hard'):>8}"
        f"{number('current_score'):>9}{number('best_score'):>7}{applied:>7}\n"
    )


def _near(item_id: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(item_id, known, n=3) or known[:3]
    return f"ids here look like {', '.join(near)}." if near else "nothing was run yet."


def _item_text(split: str, skill_hash: str, result: RolloutResult) -> str:
    score = f"hard {result.hard:g}, soft {result.soft:g}" if result.ok else f"no score: {result.error}"
    lines = [f"== {result.id} ({split}) under skill {skill_hash}: {score}"]
    for label, value in (
        ("answer", result.predicted_answer),
        ("reference", result.reference_text),
        ("why not right", result.fail_reason),
    ):
        if value:
            lines.append(f"{label}: {value}")
    for entry in result.trajectory:
        role = entry.get("role") or entry.get("type") or "agent"
        content = entry.get("content")
        shown = content if isinstance(content, str) else json.dumps(dict(entry), ensure_ascii=False)
        lines += [f"[{role}]", shown]
    if result.extras.get("agent_trace"):
        lines += ["[trace]", str(result.extras["agent_trace"])]
    return "\n".join(plain(line) for line in lines) + "\n\n"
