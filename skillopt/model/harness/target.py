"""The public function that runs the target agent in a folder that its caller prepared."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from skillopt.config.providers import get_provider
from skillopt.errors import ConfigError
from skillopt.model.active import session_or_default
from skillopt.model.harness.workspace import Workspace
from skillopt.model.session import Session
from skillopt.model.values import ModelCall


def run_target_exec(  # noqa: PLR0913 - a published signature
    *,
    work_dir: str | Path,
    prompt: str,
    model: str = "",
    timeout: float | None = None,
    images: Sequence[str | Path] | None = None,
    data_dirs: Sequence[str | Path] | None = None,
    allowed_tools: Sequence[str] | None = None,
    permission_mode: str | None = None,
    sandbox: str | None = None,
    full_auto: bool | None = None,
    allow_file_edits: bool = False,
) -> tuple[str, str]:
    """`(answer, trace)` of the target agent for `prompt`, in `work_dir` as `prepare_workspace` made it.

    `timeout`: seconds for everything, further attempts after an empty answer included. Traces are kept beside
    `work_dir` (`<agent>_raw.txt`, `<agent>_trace_summary.txt`). `full_auto` has no effect.

    Raises ConfigError (a ValueError) when the target is no agent, DataError (a ValueError) for folders that an agent
    may not be given, and ModelError: DeadlineError when the time is over, EmptyReplyError when the answer stays empty.
    """
    session = _session_with_agent()
    if full_auto is not None:
        warnings.warn("full_auto is deprecated and ignored; use sandbox", FutureWarning, stacklevel=2)
    folder = Path(work_dir)
    workspace = Workspace(
        folder=folder,
        images=tuple(Path(path) for path in images or ()),
        data_dirs=tuple(Path(path) for path in data_dirs or ()),
        allow_file_edits=allow_file_edits,
        allowed_tools=tuple(allowed_tools or ()),
        permission_mode=permission_mode or "",
        sandbox=sandbox or "",
        trace_dir=folder.resolve().parent,
    )
    call = ModelCall(({"role": "user", "content": prompt},), model=model, stage="rollout", workspace=workspace)
    reply = session.call("target", call, timeout=timeout)
    return reply.text, reply.work.trace if reply.work else ""


def _session_with_agent() -> Session:
    """The session in force. Raises ConfigError when its target is no coding agent."""
    session = session_or_default()
    backend = session.role("target").backend
    if not get_provider(backend).is_agent("target"):
        raise ConfigError(f"The target {backend} is no coding agent; choose one with model.target_backend.")
    return session
