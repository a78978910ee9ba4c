"""`harvest`: what `run` would work with, found without a model; and what mining would send to one."""

from __future__ import annotations

import argparse

from skillopt_sleep.cli_arguments import overrides_of
from skillopt_sleep.cli_output import line, notice, print_json
from skillopt_sleep.cli_run import show_plan
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.harvest import harvest as harvest_new
from skillopt_sleep.harvest import harvest_for_config
from skillopt_sleep.locks import night_lock
from skillopt_sleep.mining import SplitMemory, mine
from skillopt_sleep.phases.coding import placed_tasks
from skillopt_sleep.phases.context import read_document
from skillopt_sleep.phases.plan import plan_night, tasks_tonight
from skillopt_sleep.show import counted
from skillopt_sleep.state import SleepState
from skillopt_sleep.tasks_file import make_tasks_payload, write_tasks_file
from skillopt_sleep.types import SessionDigest, TaskRecord

_INTENT_CHARS = 90


def harvest(args: argparse.Namespace) -> int:
    """Show the tasks in the sessions that the next night would read; the cursor does not move."""
    config = load_config(**overrides_of(args))
    if args.preview:
        with night_lock(config.state_dir):
            show_plan(plan_night(config, only_mining=True), as_json=args.json)
        return 0
    digests, notes = _sessions(config, everything=args.all)
    tasks = _tasks(config, digests, notes, everything=args.all)
    payload = make_tasks_payload(
        tasks,
        project=str(config.project),
        transcript_source=str(config.get("transcript_source")),
        n_sessions=len(digests),
        target_skill_path=str(config.get("target_skill_path")),
    )
    written = str(write_tasks_file(args.output, payload)) if args.output else ""
    if args.json:
        for note in notes:
            notice(note)
        print_json({**payload, **({"output": written} if written else {})})
        return 0
    line(f"{counted(len(digests), 'session')}, {counted(len(tasks), 'task')}")
    for note in notes:
        line(f"note: {note}")
    for task in tasks:
        where = "/in a checkout" if task.workspace else ""
        line(f"[{task.split}/{task.outcome}{where}] {task.intent[:_INTENT_CHARS]}")
    if written:
        line(f'written: {written}; review it, set "reviewed": true, then: skillopt-sleep run --tasks-file FILE')
    return 0


def _sessions(config: SleepConfig, *, everything: bool) -> tuple[list[SessionDigest], list[str]]:
    notes: list[str] = []
    if everything:
        return harvest_for_config(config, limit=config.session_limit, on_note=notes.append), notes
    found = harvest_new(config)
    return found.digests, found.notes


def _tasks(
    config: SleepConfig, digests: list[SessionDigest], notes: list[str], *, everything: bool
) -> list[TaskRecord]:
    """The heuristic miner's tasks, limited, filtered and split as on a night; with those of `everything` none moves."""
    state = SleepState.load(config.state_path)
    most = int(config.get("max_tasks_per_night"))
    target = str(config.managed_skill_path) if config.get("target_skill_path") else ""
    text = read_document(config.managed_skill_path).text if target and config.get("target_task_filter") else ""
    val, test = config.fractions
    tasks = mine(
        digests,
        max_tasks=most,
        candidate_limit=3 * most if text.strip() else most,
        val_fraction=val,
        test_fraction=test,
        seed=int(config.get("seed")),
        target_skill_text=text,
        target_skill_path=target,
        memory=SplitMemory(state, str(config.project)),
        notes=notes,
    )
    if everything:
        return placed_tasks(config, tasks, digests)
    tasks, told = tasks_tonight(config, state, tasks, digests)
    notes += told
    return tasks
