"""`run` and `dry-run`: a night, or the plan of one."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

from skillopt_sleep import staging
from skillopt_sleep.backends import reaches_network
from skillopt_sleep.cli_arguments import overrides_of
from skillopt_sleep.cli_output import line, notice, print_json, replayed_tasks, text_block, waiting_prompts
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import PendingCalls, SleepError, UsageProblem
from skillopt_sleep.handoff_driver import Waiting, run_round
from skillopt_sleep.locks import night_lock
from skillopt_sleep.mining import SplitMemory
from skillopt_sleep.phases.plan import Plan, plan_night
from skillopt_sleep.report import REASON_WORDS, held_out_scores
from skillopt_sleep.show import counted, quoted
from skillopt_sleep.state import SleepState
from skillopt_sleep.tasks_file import is_reviewed, load_tasks_file
from skillopt_sleep.types import CycleOutcome, EditRecord, TaskRecord


def run(args: argparse.Namespace) -> int:
    """A night."""
    return _night(args, dry_run=False)


def dry_run(args: argparse.Namespace) -> int:
    """A night that leaves nothing behind but its evidence."""
    return _night(args, dry_run=True)


def _night(args: argparse.Namespace, *, dry_run: bool) -> int:
    config = load_config(**overrides_of(args))
    reaches = reaches_network(config)  # also finds out that no backend was chosen
    config, tasks, meta = given_tasks(args, config)
    if meta is not None and reaches and not is_reviewed(meta) and not args.plan:
        raise UsageProblem(
            f"{args.tasks_file} is not reviewed, and its tasks would go to {', '.join(config.backends)}. Look through "
            'it, set "reviewed": true in it, and run this again.'
        )
    assigned = meta is not None and bool(meta.get("assigned"))
    if args.plan:
        with night_lock(config.state_dir):
            show_plan(plan_night(config, seed=tasks, assigned=assigned), as_json=args.json)
        return 0
    done = run_round(config, seed_tasks=tasks, assigned=assigned, dry_run=dry_run)
    if isinstance(done, Waiting):
        _show_waiting(done, as_json=args.json)
        return PendingCalls.exit_code
    if args.json:
        more = {"tasks_file": args.tasks_file, "tasks_reviewed": is_reviewed(meta)} if meta is not None else {}
        print_json({**document_of(done, config), **more})
    else:
        _show(done, config)
    return 0


def given_tasks(
    args: argparse.Namespace, config: SleepConfig
) -> tuple[SleepConfig, list[TaskRecord] | None, dict[str, Any] | None]:
    """(settings, tasks, metadata) with the tasks file taken into account; no tasks and no metadata without one."""
    if not args.tasks_file:
        return config, None, None
    val, test = config.fractions
    memory = SplitMemory(SleepState.load(config.state_path), str(config.project))
    tasks, meta = load_tasks_file(
        args.tasks_file, val_fraction=val, test_fraction=test, seed=int(config.get("seed")), memory=memory
    )
    for warning in meta.get("warnings", ()):
        notice(f"{args.tasks_file}: {warning}")
    named = meta.get("target_skill_path")
    if isinstance(named, str) and named.strip() and not config.get("target_skill_path"):
        config = config.replace(target_skill_path=named)
    return config, tasks, meta


def document_of(done: CycleOutcome, config: SleepConfig) -> dict[str, Any]:
    """The JSON document of a night."""
    report = done.report
    return {
        "night": report.night,
        "accepted": report.accepted,
        "gate_action": report.gate_action,
        "no_edits_reason": report.no_edits_reason,
        "baseline": report.baseline_score,
        "candidate": report.candidate_score,
        "n_tasks": report.n_tasks,
        "n_sessions": report.n_sessions,
        "n_accepted_edits": len(report.edits),
        "n_rejected_edits": len(report.rejected_edits),
        "edits": [edit.to_dict() for edit in report.edits],
        "rejected_edits": [edit.to_dict() for edit in report.rejected_edits],
        "gate_no_regression": report.gate_no_regression,
        "gate_trials": report.gate_trials,
        "skill_groups": [group.to_dict() for group in report.skill_groups],
        "notes": report.notes,
        "staging_dir": done.staging_dir,
        "staged_skills": pending_names(done.staging_dir, config),
        "adopted": done.adopted,
        "status": report.status,
        "adopted_paths": done.adopted_paths,
        "held_edits": [edit.to_dict() for edit in report.held_edits],
        "unmatched_edits": [edit.to_dict() for edit in report.unmatched_edits],
        "holdout_leaked": report.holdout_leaked,
        "n_errors": report.n_errors,
        "test_baseline": report.test_baseline,
        "test_candidate": report.test_candidate,
        "tokens_used": report.tokens_used,
        "usage": report.usage,
        "gate_detail": report.gate_detail,
        "n_replayed": report.n_replayed,
    }


def pending_names(night: str, config: SleepConfig) -> list[str]:
    """Named skills that wait to be adopted from a night."""
    with contextlib.suppress(SleepError):  # told by `status`
        return [row["skill_name"] for row in staging.pending_staged_skills(night, cfg=config)] if night else []
    return []


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print a plan, every prompt in full."""
    if as_json:
        print_json(plan.to_dict())
        return
    found = f"{counted(plan.n_sessions, 'session')}, {counted(len(plan.tasks), 'task')}"
    line(f"Night {plan.night}: {found}. Nothing was sent.")
    for provider in plan.to_dict()["providers"]:
        line(
            f"To {provider['backend']} (model {provider['model'] or 'as usual'}): "
            f"{counted(provider['n_calls'], 'call')} known by now, about {provider['tokens']} tokens of prompts"
        )
    kinds = ", ".join(f"{kind} {count}" for kind, count in plan.at_most.items())
    line(f"Calls at most: {plan.most}" + (f" ({kinds})" if kinds else "") + _caps(plan))
    for note in plan.notes:
        line(f"note: {note}")
    for number, call in enumerate(plan.calls, start=1):
        line(f"----- {number}. {call.kind} to {call.backend}, about {call.tokens} tokens -----")
        if call.note:
            line(call.note)
        text_block(call.prompt)


def _caps(plan: Plan) -> str:
    calls = "no cap on calls" if plan.cap is None else f"never more than {counted(plan.cap, 'call')}"
    tokens = "no cap on tokens" if plan.token_cap is None else f"{plan.token_cap} tokens"
    return f"; {calls}, {tokens}"


def _show_waiting(waiting: Waiting, *, as_json: bool) -> None:
    told = [
        f"{waiting_prompts(waiting.pending)}: {waiting.prompts}",
        f"Write the answers to {waiting.answers}, then run the same command again.",
    ]
    if as_json:
        for row in told:
            notice(row)
        print_json(
            {
                "handoff_pending": waiting.pending,
                "prompts": str(waiting.prompts),
                "answers_dir": str(waiting.answers),
            }
        )
        return
    for row in told:
        line(row)


def _show(done: CycleOutcome, config: SleepConfig) -> None:
    report = done.report
    tasks = replayed_tasks(report.n_tasks, report.n_replayed)
    line(f"Night {report.night}: {counted(report.n_sessions, 'session')}, {tasks}, {report.status}")
    accepted = "yes" if report.accepted else "no"
    line(f"held-out {held_out_scores(report)} => {report.gate_action or 'no decision'} (accepted={accepted})")
    why = str(report.gate_detail.get("reason") or "") or REASON_WORDS.get(report.no_edits_reason, "")
    if why and not report.accepted:
        line(f"why: {why}")
    for edit in report.edits:
        line(f"+ {_edit(edit)}")
    _show_list("unverified" if report.holdout_leaked else "rejected", report.rejected_edits)
    _show_list("held for review", report.held_edits)
    for note in report.notes:
        line(f"note: {note}")
    if done.staging_dir:
        line(f"staged: {Path(done.staging_dir)}")
        _show_next(done, config)
    if done.adopted:
        line("adopted:")
        for path in done.adopted_paths:
            line(f"  {path}")


def _show_next(done: CycleOutcome, config: SleepConfig) -> None:
    names = pending_names(done.staging_dir, config)
    managed = False
    with contextlib.suppress(SleepError):
        managed = staging.has_pending_staged_managed(done.staging_dir, cfg=config)
    if names:
        line(f"pending skills: {', '.join(map(quoted, names))}")
        line("adopt one with: skillopt-sleep adopt --skill NAME; all with: skillopt-sleep adopt --all-skills")
        if managed:
            line("the managed skill and memory with: skillopt-sleep adopt --legacy")
    elif managed and not done.adopted:
        line("look with: skillopt-sleep diff; adopt with: skillopt-sleep adopt")


def _show_list(title: str, edits: list[EditRecord]) -> None:
    if edits:
        line(f"{title}:")
        for edit in edits:
            line(f"- {_edit(edit)}")


def _edit(edit: EditRecord) -> str:
    return f"[{edit.target}/{edit.op}] {edit.content or edit.anchor}"
