"""What every command shares: streams, signals, exit codes, and the options that mean the same everywhere."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from skillopt.errors import InterruptedRunError, SkillOptError, UsageError

if TYPE_CHECKING:
    from skillopt.config.run_config import RunConfig
    from skillopt.tracking.console import ConsoleSink
    from skillopt.utils.cancel import CancelToken

DONE, FAILED, INTERRUPTED = 0, 1, 130


def run(command: Callable[[TextIO], int]) -> int:
    """Run `command` and turn what it raises into one message on standard error and an exit code.

    The command writes its result to the stream it is given, which is the real standard output. Whatever else is
    printed meanwhile (by a custom scorer, say) goes to standard error, so that a result for programs stays one
    document. Codes: 0 done, 1 failed, 2 usage, 3 stopped by a budget, 130 interrupted.
    """
    use_utf8()
    out = sys.stdout
    try:
        with contextlib.redirect_stdout(sys.stderr), _plain_warnings():
            return command(out)
    except SkillOptError as error:
        print(f"skillopt: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("skillopt: interrupted; everything finished is kept, the same command goes on.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def use_utf8() -> None:
    """Make standard output and error UTF-8, replacing what cannot be encoded (half a surrogate pair in a reply)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            lenient = stream.errors == "backslashreplace"
            stream.reconfigure(encoding="utf-8", errors="backslashreplace" if lenient else "replace")


@contextlib.contextmanager
def interruptible() -> Iterator[CancelToken]:
    """A token that the first SIGINT or SIGTERM cancels; a second one ends the process at once."""
    from skillopt.utils.cancel import CancelToken

    token = CancelToken()

    def stop(number: int, _frame: FrameType | None) -> None:
        if token.interrupted:
            os._exit(INTERRUPTED)
        token.cancel()
        raise InterruptedRunError(
            f"stopped by {signal.Signals(number).name}; everything finished is kept, the same command goes on."
        )

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield token
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def resumable(config: RunConfig) -> Iterator[None]:
    """Say how to go on with what ends early inside, when nobody chose its folder: the next run would get a new one."""
    try:
        yield
    except (SkillOptError, KeyboardInterrupt) as error:
        folder = config.env.out_root
        stopped = not isinstance(error, UsageError) and Path(folder).is_dir()
        if stopped and config.source("env.out_root") == "derived":
            print(f"note: to go on with this run, add --out_root {shlex.quote(folder)}", file=sys.stderr)
        raise


def console() -> ConsoleSink:
    """Progress on standard error: bars on a terminal, plain lines elsewhere."""
    from skillopt.tracking.console import ConsoleSink

    return ConsoleSink(sys.stderr, bars=sys.stderr.isatty())


def print_json(value: object, out: TextIO) -> None:
    """One JSON document on `out`."""
    out.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show our own warnings as one line without a source position, and always."""

    def show(message: Warning | str, *_position: object, **_more: object) -> None:
        print(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in (FutureWarning, DeprecationWarning):
            warnings.filterwarnings("always", category=category, module=r"skillopt\b")
        warnings.showwarning = show
        yield


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")


def add_cfg_options(parser: argparse.ArgumentParser) -> None:
    """Add `--cfg-options`, the single settings that go over those of a file."""
    parser.add_argument("--cfg-options", nargs="*", default=[], metavar="KEY=VALUE")


def arguments(argv: Sequence[str] | None) -> Sequence[str]:
    """The given arguments, or those of the process."""
    return sys.argv[1:] if argv is None else argv
