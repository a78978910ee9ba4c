"""What the backends that run a command line as a chat model have in common: one run, its faults, its lines of JSON.

where = cli_where(role, model, program, credentials, env)
with scratch_folder("skillopt_tool_") as folder:
    result = run_cli([program, "-p"], stdin=prompt, folder=folder, env=env, where=where, ctx=ctx, setting="TOOL_PATH")
    if result.code:
        raise error_from_words(result.stderr or result.stdout, where)
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skillopt.errors import (
    AuthError,
    ContentFilterError,
    ContextTooLongError,
    DeadlineError,
    ModelError,
    ModelSetupError,
    RateLimitError,
    TransientError,
)
from skillopt.model.classify import MAX_ERROR_CHARS, Where, clip, error_from_status
from skillopt.model.values import CallContext
from skillopt.types import JsonObject, RoleConfig, Usage
from skillopt.utils.process import ProcessResult, run_process
from skillopt.utils.redact import hide_in_addresses, is_secret_name
from skillopt.utils.tool_servers import ASKING_SECONDS, ServersUnknownError, Source, Told, servers_of

_SHOWN_CHARS = 600
_NOTICE_CHARS = 160
_READ_CHARS = 32_000

_STATUS = re.compile(r"\b(?:API Error|HTTP|status(?: code)?)\W{0,3}([45]\d\d)\b", re.IGNORECASE)
_LIMITED = re.compile(
    r"rate[ _-]?limit|too many requests|(usage|hour|weekly|session) limit|limit reached|quota", re.IGNORECASE
)
_LIMITED_UNTIL = re.compile(r"limit reached\|(\d{10})\b")
_SIGN_IN = re.compile(
    r"invalid (x-)?api[ -]?key|authenticat|\blog[ -]?in\b|\b(logged|signed|sign)[ -]in\b|unauthori[sz]ed|oauth",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"credit balance is too low|payment required", re.IGNORECASE)
_NO_OPTION = re.compile(
    r"\b(unknown|unrecogni[sz]ed|unexpected|invalid) (option|argument|flag|subcommand)\b", re.IGNORECASE
)
# A whole reply that says no more than that somebody has to sign in. A model that writes about it says more.
_SIGN_IN_NOTICE = re.compile(
    r"(?:error:\s*)?"
    r"(?P<fault>invalid (?:x-)?api[ -]?key|(?:you(?: are|'re) )?not (?:logged|signed) in|(?:login|authentication) "
    r"(?:required|failed)|(?:oauth |access )?token (?:has )?expired|no authentication information found)?"
    r"[\s·.,:;!—–-]*"
    r"(?P<advice>(?:please )?(?:run|use|type)\s+[`'\"]?(?:(?:claude|codex|copilot|gh) )?/?(?:auth )?log-?in\b"
    r"[^\n]{0,60})?"
    r"[.!\s]*",
    re.IGNORECASE,
)


def cli_where(role: RoleConfig, model: str, program: str, credentials: str, env: Mapping[str, str]) -> Where:
    """What an error says about a call: `credentials` is how to sign in, in words; secrets are those of `env`."""
    secrets = tuple(value for name, value in env.items() if is_secret_name(name))
    return Where(role.role, model or "default", program, credentials, secrets)


def run_cli(
    argv: Sequence[str],
    *,
    stdin: str,
    folder: Path,
    env: Mapping[str, str],
    where: Where,
    ctx: CallContext,
    setting: str,
) -> ProcessResult:
    """`run_program` whose time must suffice: raises DeadlineError, with the program's last words, when it did not."""
    result = run_program(argv, stdin=stdin, folder=folder, env=env, where=where, ctx=ctx, setting=setting)
    if result.timed_out:
        raise DeadlineError(
            f"{where.short} did not answer in {ctx.timeout:g} seconds and was ended.{_last_words(result, where)}"
        )
    return result


def run_program(
    argv: Sequence[str],
    *,
    stdin: str,
    folder: Path,
    env: Mapping[str, str],
    where: Where,
    ctx: CallContext,
    setting: str,
) -> ProcessResult:
    """Run a command line in `folder`, once, for at most the attempt's time; what came of it is for the caller to judge.

    `setting` says where its path is set. Raises ModelSetupError when it is not there or cannot be started,
    InterruptedRunError when the run is stopped.
    """
    try:
        return run_process(argv, cwd=folder, env=env, stdin=stdin, timeout=ctx.timeout, cancel=ctx.cancel)
    except OSError as error:
        reason = shown_words(error.strerror or type(error).__name__, where)
        raise ModelSetupError(
            f"{where.short} could not be executed: {reason}. Install it, or set {setting} to the path of the program."
        ) from error


def tool_servers(
    source: Source, *, env: Mapping[str, str], where: Where, ctx: CallContext, setting: str
) -> tuple[str, ...]:
    """The names of the tool servers that a person has configured for a command line; it is asked once in a process.

    Raises ModelSetupError when it does not tell them, though there are some, and as `run_cli` does.
    """

    def ask(argv: Sequence[str], folder: Path) -> Told:
        soon = replace(ctx, timeout=min(ctx.timeout, ASKING_SECONDS))
        result = run_cli(argv, stdin="", folder=folder, env=env, where=where, ctx=soon, setting=setting)
        words = result.stderr.strip() or result.stdout.strip() or f"exit code {result.code}"
        return Told(fault=shown_words(words, where)) if result.code else Told(result.stdout)

    try:
        return servers_of(source, ask)
    except ServersUnknownError as unknown:
        raise ModelSetupError(f"{where.short} cannot be used: {unknown}") from None


@contextlib.contextmanager
def counting(usage: Usage, ctx: CallContext) -> Iterator[None]:
    """While inside, a run that fails is counted with what it says that it used, if it says so."""
    try:
        yield
    except ModelError:
        if ctx.spent is not None and usage.known:
            ctx.spent(usage)
        raise


def error_from_words(words: str, where: Where, status: int = 0) -> ModelError:
    """The error for what a command line said when it failed; `status` is the HTTP status where it tells one.

    What nobody knows is taken for passing: a TransientError.
    """
    said = shown_words(words, where, MAX_ERROR_CHARS) or "nothing"
    status = status or int(next(iter(_STATUS.findall(said)), 0))
    detail = f"{where.short} failed: {said}"
    if _LIMITED.search(said):
        return RateLimitError(detail, _asked_wait(said))
    if _NO_CREDIT.search(said):
        return AuthError(f"{detail} (no credit left)")
    if _NO_OPTION.search(said):
        return ModelSetupError(f"{detail} (its version does not know an option that is needed; update it)")
    if status not in (0, 400):
        return _by_status(status, said, where)
    known = _by_words(said, where)
    if known is not None:
        return known
    if _SIGN_IN.search(said):
        return not_signed_in(said, where)
    return TransientError(detail, unclear=True)


def not_signed_in(said: str, where: Where) -> AuthError:
    """The error for a command line that nobody has signed in to."""
    return AuthError(f"{where.short} is not signed in ({shown_words(said, where)}). {where.credentials}")


def shown_words(words: str, where: Where, limit: int = _SHOWN_CHARS) -> str:
    """What a command line said, for a message: in one line, without secrets, at most `limit` characters."""
    return clip(hide_in_addresses(words[:_READ_CHARS]), where.secrets, limit)


def asks_to_sign_in(reply: str) -> bool:
    """True when a reply that looks successful is nothing but a request to sign in.

    A longer answer about signing in is an answer.
    """
    text = reply.strip()
    match = _SIGN_IN_NOTICE.fullmatch(text) if len(text) <= _NOTICE_CHARS else None
    return bool(match and (match["fault"] or match["advice"]))


def json_events(text: str) -> list[JsonObject]:
    """The JSON objects of an output: of the whole text, of each of its lines, or of lists on its lines."""
    whole = _objects(text)
    return whole or [event for line in text.splitlines() for event in _objects(line)]


def _objects(text: str) -> list[JsonObject]:
    if not text.lstrip().startswith(("{", "[")):
        return []
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict)]


def _by_status(status: int, said: str, where: Where) -> ModelError:
    error = error_from_status(status, {}, said, replace(where, credentials="its sign-in"))
    return AuthError(f"{error} {where.credentials}") if isinstance(error, AuthError) else error


def _by_words(said: str, where: Where) -> ModelError | None:
    """The error that the words alone tell, as for an answer 400: no such model, too long, filtered."""
    found = error_from_status(400, {}, said, where)
    if not isinstance(found, (ModelSetupError, ContextTooLongError, ContentFilterError, AuthError)):
        return None
    found.args = (str(found).replace(" answered HTTP 400:", " failed:", 1),)
    return found


def _asked_wait(said: str) -> float | None:
    until = _LIMITED_UNTIL.search(said)
    return max(0.0, float(until[1]) - time.time()) if until else None


def _last_words(result: ProcessResult, where: Where) -> str:
    """The end of what a program wrote before it was ended."""
    written = (result.stderr.strip() or result.stdout.strip())[-_READ_CHARS:]
    said = shown_words(written, where, _READ_CHARS)
    return f" Its last words: {said[-_SHOWN_CHARS:]}" if said else ""
