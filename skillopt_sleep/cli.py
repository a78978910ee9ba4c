"""`skillopt-sleep ACTION [flags]`. Each action is a function of `cli_<area>` that prints and returns the exit code.

Exit codes: 0 done (a rejected night and one without tasks too), 1 it could not be done, 2 something has to be changed
first, 3 prompts of a handoff wait for answers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from skillopt_sleep.cli_arguments import build_parser, wants_json
from skillopt_sleep.cli_output import notice, print_json
from skillopt_sleep.errors import SleepError

_WHERE = {
    "run": ("cli_run", "run"),
    "dry-run": ("cli_run", "dry_run"),
    "status": ("cli_status", "status"),
    "diff": ("cli_adopt", "diff"),
    "adopt": ("cli_adopt", "adopt"),
    "undo": ("cli_adopt", "undo"),
    "reject": ("cli_adopt", "reject"),
    "recover": ("cli_adopt", "recover"),
    "harvest": ("cli_harvest", "harvest"),
    "schedule": ("cli_schedule", "schedule"),
    "unschedule": ("cli_schedule", "unschedule"),
}
DEBUG_VARIABLE = "SKILLOPT_SLEEP_DEBUG"
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow locale must not end a night
    as_json = wants_json(words)
    args: argparse.Namespace | None = None
    try:
        args = build_parser().parse_args(words)
        module, name = _WHERE[args.action]
        with _term_as_interrupt():
            code: int = getattr(importlib.import_module(f"skillopt_sleep.{module}"), name)(args)
        sys.stdout.flush()
        return code
    except SleepError as error:
        return _failed(error.code, str(error), error.exit_code, as_json=as_json, **_more(error, args))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _failed(
            "system", f"{place}{error.strerror or error}. Run it again when that is mended.", 1, as_json=as_json
        )
    except KeyboardInterrupt:
        words_ = "Interrupted. The same command goes on where this one stopped and pays for nothing twice."
        return _failed("interrupted", words_, _INTERRUPTED, as_json=as_json)
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        told = f"{type(error).__name__}: {error} (a fault of this program; {DEBUG_VARIABLE}=1 shows where)"
        return _failed("internal", told, 1, as_json=as_json)


@contextlib.contextmanager
def _term_as_interrupt() -> Iterator[None]:
    """A machine that shuts down, or a timer that stops a night, says TERM: clean up and say so, as for Ctrl-C."""
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _failed(code: str, message: str, exit_code: int, *, as_json: bool, **more: Any) -> int:
    if as_json:
        print_json({"ok": False, "error": code, "message": message, **more})
    else:
        notice(f"skillopt-sleep: {message}")
        for row in more.get("available_skills", ()):
            notice(f"  {row['skill_name']!a}: {row['live_skill_path']}")
        for row in str(more.get("diff", "")).splitlines():
            notice(f"  {row}")
    return exit_code


def _more(error: SleepError, args: argparse.Namespace | None) -> dict[str, Any]:
    """What an error knows beside its message."""
    more: dict[str, Any] = {}
    if args is not None and args.action == "adopt":
        more["staging_dir"] = str(getattr(args, "night", "") or args.staging)
    available = getattr(error, "available", ())
    if error.code == "selection_required" or available:
        more["available_skills"] = [{"skill_name": name, "live_skill_path": path} for name, path in available]
    if getattr(error, "diff", ""):
        more["diff"] = error.diff  # type: ignore[attr-defined]
    return more
