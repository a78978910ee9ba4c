"""`diff`, `adopt`, `undo`, `reject` and `recover`: everything about staged changes."""

from __future__ import annotations

import argparse
from pathlib import Path

from skillopt_sleep import paths, staging
from skillopt_sleep.cli_arguments import overrides_of
from skillopt_sleep.cli_output import line, lines, notice, print_json
from skillopt_sleep.cli_status import nothing_staged, recover_first
from skillopt_sleep.config import SleepConfig, load_config
from skillopt_sleep.staging import NightView, NoStaging, SelectionRefused


def diff(args: argparse.Namespace) -> int:
    """What adopting would change."""
    config, night = _night(args)
    text = staging.diff(night, [name.strip() for name in args.skill] or None, cfg=config)
    if args.json:
        print_json({"ok": True, "staging_dir": night, "diff": text})
    elif text:
        print(text, end="")  # every character of it is written out safely already
    else:
        line("Adopting would change nothing.")
    return 0


def adopt(args: argparse.Namespace) -> int:
    """Adopt the managed pair or named skills, all or nothing."""
    config, night = _night(args)
    args.night = night
    chosen = staging.select(night, skills=args.skill, all_skills=args.all_skills, legacy=args.legacy, cfg=config)
    seen = staging.view(night, cfg=config)
    if chosen.mode == "legacy" and not args.staging:
        _refuse_turned_down(seen)
    rows = [row for row in seen.pending if (row.kind == "managed") == (chosen.mode == "legacy")]
    wanted = [row for row in rows if row.kind == "managed" or row.name in chosen.names]
    warnings = staging.git_notices([row.live_realpath for row in wanted])
    for warning in warnings:
        notice(warning)
    receipts = []
    if chosen.mode == "legacy":
        changed = staging.adopt(night, trust_unsigned=args.trust_unsigned, cfg=config)
    else:
        receipts = staging.adopt_skills(night, list(chosen.names), trust_unsigned=args.trust_unsigned, cfg=config)
        changed = [receipt.live_skill_path for receipt in receipts]
    document = {
        "ok": True,
        "staging_dir": night,
        "mode": chosen.mode,
        "adopted_skills": [receipt.to_dict() for receipt in receipts],
        "updated_paths": changed,
    }
    if warnings:
        document["warnings"] = warnings
    if args.git_commit and changed:
        document["commits"] = staging.commit_adopted(changed, f"Adopt what night {Path(night).name} learned")
    if args.json:
        print_json(document)
        return 0
    lines([f"adopted: {path}" for path in changed] or ["This night proposes nothing to adopt; nothing was changed."])
    if changed:
        line("take it back with: skillopt-sleep undo")
    return 0


def _refuse_turned_down(night: NightView) -> None:
    """What a person has turned down is adopted only when they name the night."""
    managed = [one.status for one in night.rows if one.row.kind == "managed"]
    if managed and all(status == "rejected" for status in managed):
        raise SelectionRefused(
            f"{night.folder.name} was turned down; `skillopt-sleep adopt --staging {night.folder}` adopts it after all."
        )


def undo(args: argparse.Namespace) -> int:
    """Take the last adoption back."""
    config = _config(args)
    done = staging.undo(paths.expand(args.staging) if args.staging else config.project, cfg=config)
    if args.json:
        print_json({"ok": True, "night": done.night, "restored": list(done.restored), "removed": list(done.removed)})
        return 0
    lines([f"restored: {path}" for path in done.restored])
    lines([f"removed (it had been new): {path}" for path in done.removed])
    return 0


def reject(args: argparse.Namespace) -> int:
    """Turn staged changes down."""
    config, night = _night(args)
    keys = staging.reject(night, [name.strip() for name in args.skill] or None, cfg=config)
    if args.json:
        print_json({"ok": True, "staging_dir": night, "rejected": keys})
    else:
        lines([f"turned down: {key}" for key in keys] or ["This night proposes nothing."])
    return 0


def recover(args: argparse.Namespace) -> int:
    """Clean up after a kill, now and by name; every other command does it first too."""
    config = load_config(**overrides_of(args))
    where = paths.expand(args.staging) if args.staging else config.project
    found = staging.recover(where, keep_edited=args.keep_edited, trust_unsigned=args.trust_unsigned, cfg=config)
    rows = [
        {"night": one.night, "status": one.status, "files": list(one.files), "message": one.message} for one in found
    ]
    failed = any(one.status != "rolled_back" for one in found)
    if args.json:
        print_json({"ok": not failed, "recovered": rows})
    else:
        lines([f"{one.night}: {one.status} {one.message}" for one in found] or ["Nothing was interrupted."])
    return 1 if failed else 0


def _config(args: argparse.Namespace) -> SleepConfig:
    config = load_config(**overrides_of(args))
    recover_first(config)
    return config


def _night(args: argparse.Namespace) -> tuple[SleepConfig, str]:
    """The settings, and the night that is meant: the named one, or the newest with something to adopt."""
    config = _config(args)
    if args.staging:
        return config, str(paths.expand(args.staging))
    night = staging.latest_pending(config.project, cfg=config)
    if night is None:
        raise NoStaging(f"{config.project}: {nothing_staged(config.project)}; `skillopt-sleep run` stages a night.")
    return config, night
