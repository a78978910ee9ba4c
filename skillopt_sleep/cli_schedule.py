"""`schedule` and `unschedule`."""

from __future__ import annotations

import argparse

from skillopt_sleep import schedule as scheduler
from skillopt_sleep.backends import backend_for_config
from skillopt_sleep.cli_arguments import overrides_of
from skillopt_sleep.cli_output import line, notice, print_json
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.errors import SleepError
from skillopt_sleep.phases.coding import open_workshop_for

_ENTRY_CHARS = 140


def schedule(args: argparse.Namespace) -> int:
    """Run a night of the project every day."""
    config = load_config(**overrides_of(args))
    backends = config.backends  # one has to be chosen
    done, message = scheduler.schedule(
        config.project,
        backend=str(config.get("backend") or backends[0]),
        hour=args.hour,
        minute=args.minute,
        config=config,
        via=args.via,
    )
    problem = _problem(config) if done else ""
    return _told(args, done=done, message=f"{message}\n{problem}" if problem else message)


def _problem(config: SleepConfig) -> str:
    """What would stop a night that began now: a program that is not there, a key that is not set, no repository."""
    try:
        workshop = open_workshop_for(config, backend_for_config(config))
        if workshop is not None:
            workshop.close()
    except SleepError as error:
        return f"As things are the night would stop: {error}"
    return ""


def unschedule(args: argparse.Namespace) -> int:
    """Stop running nights by themselves."""
    config = load_config(**overrides_of(args))
    done, message = scheduler.unschedule(None if args.all else config.project, all_projects=args.all)
    return _told(args, done=done, message=message)


def _told(args: argparse.Namespace, *, done: bool, message: str) -> int:
    try:
        entries = scheduler.list_scheduled()
    except SleepError as error:
        entries = [str(error)]
    if args.json:
        shown = {"ok": True} if done else {"ok": False, "error": "schedule_failed"}
        print_json({**shown, "message": message, "entries": entries})
        return 0 if done else 1
    for row in message.splitlines():
        (line if done else notice)(row)
    for entry in entries:
        line(f"  {entry}", _ENTRY_CHARS)
    return 0 if done else 1
