"""Progress for a person: bars on a terminal, plain lines elsewhere, always on standard error.

Standard output stays free for what a program may read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from skillopt.tracking.events import Event

_REPEATED = ("model_error", "rate_limited")  # said once as long as nothing else of the kind is said
_NOT_RUN = {"errors": "without a score", "cached": "from the store"}
_QUIET_SECONDS = 5.0  # between two lines about retries of one kind
_SHOWN = 240  # characters of a passing error
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """`text` without control characters: what a model wrote cannot move the cursor or change colours."""
    return _CONTROL.sub("", text)


class ConsoleSink:
    """Writes events as lines of text. `stream` is usually `sys.stderr`; bars appear only on a terminal."""

    def __init__(self, stream: TextIO, *, bars: bool) -> None:
        self._stream = stream
        self._bars = bars
        self._bar: Any = None
        self._last: dict[str, str] = {}
        self._retries: dict[tuple[object, object], tuple[float, int]] = {}

    def write(self, event: Event) -> None:
        """Show one event."""
        if event.kind == "item_done":
            self._advance(event.data)
            return
        if event.kind in ("rollout_started", "rollout_finished"):
            self._end_bar()
        line = _line(event)
        if event.kind == "model_retry" and line:
            line = self._thinned(line, event.data)
        if line and (event.kind not in _REPEATED or line != self._last.get(event.kind)):
            self._last[event.kind] = line
            self._say(line)

    def close(self) -> None:
        """End a bar that is still open."""
        self._end_bar()

    def _thinned(self, line: str, data: Mapping[str, Any]) -> str:
        """A line about a retry, now and then: an endpoint that is down would fill the screen with them."""
        kind, now = (data.get("stage"), data.get("error")), time.monotonic()
        said, silent = self._retries.get(kind, (float("-inf"), 0))
        if now - said < _QUIET_SECONDS:
            self._retries[kind] = (said, silent + 1)
            return ""
        self._retries[kind] = (now, 0)
        return f"{line} (and {silent} more since the last such line)" if silent else line

    def _advance(self, data: Mapping[str, Any]) -> None:
        if not self._bars:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(
                total=data["total"], initial=data["done"] - 1, desc=f"  {data['purpose']}", file=self._stream,
                unit="item", leave=False, dynamic_ncols=True,
            )  # fmt: skip
        self._bar.update(data["done"] - self._bar.n)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(plain(line), file=self._stream)
        else:
            self._stream.write(plain(line) + "\n")
            self._stream.flush()


def _line(event: Event) -> str:
    render = _LINES.get(event.kind)
    return render(event.data) if render is not None else ""


def _rollout_finished(data: Mapping[str, Any]) -> str:
    score = "" if data.get("hard") is None else f"  hard {data['hard']:.4f}"
    parts = [f"{data['total']} item{'' if data['total'] == 1 else 's'}"]
    parts += [f"{data[name]} {word}" for name, word in _NOT_RUN.items() if data.get(name)]
    return f"  {data['purpose']}: {', '.join(parts)}{score}"


def _gate(data: Mapping[str, Any]) -> str:
    early = f", stopped after {data['evaluated']} of {data['total']} items" if data.get("stopped_early") else ""
    most = "at most " if early else ""
    return (
        f"  gate: {data['action']}  ({data['metric']} {most}{data['candidate']:.4f} against {data['current']:.4f}, "
        f"best {data['best']:.4f}{early})"
    )


def _step_finished(data: Mapping[str, Any]) -> str:
    return "" if data.get("gated", True) else f"  nothing to gate: {data['action']}"


def _model_error(data: Mapping[str, Any]) -> str:
    """Nothing for an error that ends the command: its message comes last anyway."""
    if data.get("fatal") or data.get("stage") == "preflight":
        return ""
    return f"  failed ({data.get('stage', 'call')}): {data.get('error', '')}: {_clip(str(data.get('message', '')))}"


def _rate_limited(data: Mapping[str, Any]) -> str:
    return "  rate limited: fewer calls at a time from now on" if data.get("lowered") else ""


def _clip(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _retry(data: Mapping[str, Any]) -> str:
    wait = data.get("wait_s", 0)  # who only waits for room, or has more room for a reply, is not worth a line
    return f"  retry in {wait:.1f} s ({data.get('stage', 'call')}): {data.get('error', '')}" if wait else ""


def _started(data: Mapping[str, Any]) -> str:
    resumed = data.get("resumed_from")
    again = f", going on after step {resumed}" if resumed is not None else ""
    sizes = f"{_some(data['epochs'], 'epoch')}, {_some(data['total_steps'], 'step')}"
    return f"Run folder {data['out_root']}: {sizes}{again}"


def _some(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "run_started": _started,
    "epoch_started": lambda d: f"[EPOCH {d['epoch']}/{d['epochs']}]",
    "step_started": lambda d: f"[STEP {d['step']}/{d['total_steps']}]",
    "baseline_started": lambda _d: "BASELINE evaluate",
    "test_started": lambda d: f"TEST {d['purpose']}",
    "phase": lambda d: f"  {d['name']}" + (f"  {d['detail']}" if d.get("detail") else ""),
    "rollout_finished": _rollout_finished,
    "gate": _gate,
    "model_retry": _retry,
    "model_error": _model_error,
    "rate_limited": _rate_limited,
    "parameter_dropped": lambda d: f"  {d.get('model', 'the model')} does not take {d.get('parameter', '?')}",
    "model_changed": lambda d: f"  warning: answered by {d.get('now', '?')}, before by {d.get('first', '?')}",
    "analyst_failed": lambda d: f"  analyst lost: {d.get('reason', '')}",
    "merge_fallback": lambda _d: "  merge failed; edits were put one after another",
    "ranking_fallback": lambda d: f"  ranking not usable; first edits kept: {d.get('reason', '')}",
    "lr_fallback": lambda d: f"  no decision on the number of edits; {d.get('kept')} kept: {d.get('reason', '')}",
    "rewrite_failed": lambda d: f"  no new text: {d.get('reason', '')}",
    "leak_refused": lambda d: f"  refused: {'; '.join(d['found'])}",
    "notes_added": lambda d: f"  {d['added']} notes added: {d['score_before']:.4f} -> {d['score']:.4f}",
    "step_finished": _step_finished,
    "notice": lambda d: f"note: {d['text']}",
}
