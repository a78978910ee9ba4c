"""Chat Completions over HTTP: Azure OpenAI, and any server that speaks the same (backend `azure_openai`).

AZURE_OPENAI_AUTH_MODE chooses: `openai_compatible` posts to `<endpoint>/chat/completions` with AZURE_OPENAI_API_KEY;
`api_key`, `azure_cli` and `managed_identity` post to a deployment at Azure. Nothing is guessed from a model's name, and
there is no built-in endpoint. Shapes are those of OpenAI's public reference of `POST /chat/completions`.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from skillopt_sleep.backends.azure import AuthMode, Tokens, auth_mode, check_host
from skillopt_sleep.backends.cli import CliBackend
from skillopt_sleep.backends.completions import (
    TOOL_TURNS,
    called_functions,
    read_completion,
    tool_answers,
    tool_schemas,
)
from skillopt_sleep.backends.faults import ProviderFault, fault_from_status, shown
from skillopt_sleep.backends.transport import HttpRequest, post
from skillopt_sleep.backends.wire import Outgoing, Reply, spent
from skillopt_sleep.errors import UsageProblem
from skillopt_sleep.vendored.utils.cancel import CancelToken

DEFAULT_MODEL = "gpt-5.5"
DEFAULT_API_VERSION = "2024-12-01-preview"
DEFAULT_COMPAT_TOKENS = 8192
NATIVE_TOKENS = 16384
_CAP_NAMES = ("max_tokens", "max_completion_tokens")
_ADDRESS = re.compile(r"(https?://[^/\s?#@]+)([^\s?#]*)(\?[^\s#]*)?", re.IGNORECASE)
_FIX = "check AZURE_OPENAI_API_KEY and AZURE_OPENAI_AUTH_MODE"
_MOST_DROPPED = 4


class OpenAIBackend(CliBackend):
    """A model behind an OpenAI-shaped endpoint. Settings are read from the environment when it is made.

    `notices` are lines worth showing: settings that were ignored. Raises UsageProblem for an unknown auth mode.
    """

    name = "azure_openai"
    tries = 5
    longest_backoff = 8.0
    timeout = 300.0
    has_tools = True

    def __init__(self, model: str = "", *, endpoint: str = "", **options: Any) -> None:
        super().__init__(model or os.environ.get("AZURE_OPENAI_DEPLOYMENT", "").strip() or DEFAULT_MODEL, **options)
        self.endpoint = (endpoint or os.environ.get("AZURE_OPENAI_ENDPOINT", "")).strip().rstrip("/")
        self.auth_mode: AuthMode = auth_mode(os.environ)
        self.api_version = os.environ.get("AZURE_OPENAI_API_VERSION", "").strip() or DEFAULT_API_VERSION
        self.notices: list[str] = []
        self.compatible = self.auth_mode == "openai_compatible"
        self._key = os.environ.get("AZURE_OPENAI_API_KEY", "").strip()
        self._tokens = Tokens(
            self.auth_mode,
            os.environ.get("AZURE_OPENAI_MANAGED_IDENTITY_CLIENT_ID", "").strip(),
            os.environ.get("AZURE_OPENAI_AD_SCOPE", "").strip() or Tokens.scope,
        )
        self._cap = self._compat_cap() if self.compatible else NATIVE_TOKENS
        self._extra = self._extra_body() if self.compatible else {}
        self._dropped: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    @property
    def identity(self) -> str:
        """What of the settings decides about answers, for keys of the cache."""
        extra = json.dumps(self._extra, sort_keys=True)
        return "|".join((self.name, self.model, self.url if self.endpoint else "", str(self._cap), extra))

    @property
    def url(self) -> str:
        """The address to post to. Raises UsageProblem when none is set or it is no address."""
        if not self.endpoint:
            raise UsageProblem(
                "No endpoint is set for the backend azure_openai; set azure_endpoint in the configuration or "
                "AZURE_OPENAI_ENDPOINT (for a server of your own also AZURE_OPENAI_AUTH_MODE=openai_compatible)."
            )
        match = _ADDRESS.fullmatch(self.endpoint)
        if not match:
            raise UsageProblem("azure_endpoint is not an address like https://NAME.openai.azure.com or http://host/v1.")
        host, path, query = match[1], match[2].rstrip("/"), match[3] or ""
        if path.endswith("/chat/completions"):
            return f"{host}{path}{query}"
        if self.compatible:
            return f"{host}{path or '/v1'}/chat/completions{query}"
        base = path.removesuffix("/openai")
        deployment = f"{base}/openai/deployments/{quote(self.model, safe='')}"
        return f"{host}{deployment}/chat/completions?api-version={quote(self.api_version, safe='')}"

    def check(self) -> None:
        """Find out without a call whether one could be made. Raises UsageProblem or CallFailed (setup, auth)."""
        url = self.url
        if self.auth_mode in ("azure_cli", "managed_identity"):
            check_host(url)
        elif self.auth_mode == "api_key" and not self._key:
            raise ProviderFault("The auth mode api_key needs a key; set AZURE_OPENAI_API_KEY.", kind="auth")
        if not self._key.isascii() or any(letter <= " " for letter in self._key):
            raise ProviderFault("AZURE_OPENAI_API_KEY holds characters that no key has.", kind="auth")

    def send(self, outgoing: Outgoing) -> Reply:
        """One request, or with tools a short conversation of them."""
        self.check()
        token = CancelToken(outgoing.seconds)
        messages: list[dict[str, Any]] = [{"role": "user", "content": outgoing.prompt}]
        schemas, names = tool_schemas(outgoing.tools)
        replies: list[Reply] = []
        called: list[str] = []
        for turn in range(TOOL_TURNS):
            try:
                message, reply = self._turn(messages, schemas if turn < TOOL_TURNS - 1 else [], token)
            except ProviderFault as fault:
                if replies:  # the earlier requests were paid for
                    fault.tokens = (fault.tokens or 0) + sum(spent(outgoing, earlier).total for earlier in replies)
                raise
            replies.append(reply)
            if not message.get("tool_calls") or not schemas:
                break
            called += [names[name] for name in called_functions(message) if name in names]
            messages += [message, *tool_answers(message)]
        return replace(
            replies[-1],
            prompt_tokens=_sum(reply.prompt_tokens for reply in replies),
            completion_tokens=_sum(reply.completion_tokens for reply in replies),
            tools_called=tuple(dict.fromkeys(called)),
            requests=len(replies),
        )

    def _turn(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], token: CancelToken
    ) -> tuple[dict[str, Any], Reply]:
        """One request; once more without a parameter that the endpoint says it does not take."""
        for _ in range(_MOST_DROPPED):
            payload = self._payload(messages, tools)
            try:
                return self._post(payload, token.remaining() or 0.0)
            except ProviderFault as fault:
                parameter = fault.parameter
                droppable = parameter in payload and parameter not in ("tools", "tool_choice", *self._dropped)
                if not droppable:
                    raise
                with self._lock:
                    self._dropped |= {parameter}
        return self._post(self._payload(messages, tools), token.remaining() or 0.0)

    def _post(self, payload: Mapping[str, Any], seconds: float) -> tuple[dict[str, Any], Reply]:
        url = self.url
        who = f"{self.name} model {self.model!r} at {url.partition('?')[0]}"
        headers = self._headers(url)
        secrets = tuple(value.removeprefix("Bearer ") for value in headers.values())
        body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")
        answer = post(HttpRequest(url, who, body, headers, secrets), seconds=seconds)
        if not 200 <= answer.status < 300:
            raise fault_from_status(answer.status, answer.headers, answer.text, who, fix=_FIX, secrets=secrets)
        return read_completion(answer.text, who, secrets)

    def _headers(self, url: str) -> dict[str, str]:
        if self.auth_mode in ("azure_cli", "managed_identity"):
            return {"Authorization": f"Bearer {self._tokens.bearer(url)}"}
        if not self._key:
            return {}
        return {"Authorization": f"Bearer {self._key}"} if self.compatible else {"api-key": self._key}

    def _payload(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        own, other = _CAP_NAMES if self.compatible else reversed(_CAP_NAMES)
        cap = own if own not in self._dropped else other
        caps = {cap: self._cap} if cap not in self._dropped else {}
        more = {"tools": list(tools), "tool_choice": "auto"} if tools else {}
        payload = {"model": self.model, **caps, **more, **self._extra, "messages": list(messages)}
        return {name: value for name, value in payload.items() if name not in self._dropped}

    def _compat_cap(self) -> int:
        text = os.environ.get("SKILLOPT_SLEEP_COMPAT_MAX_TOKENS", "").strip()
        if not text:
            return DEFAULT_COMPAT_TOKENS
        if text.isdecimal() and len(text) < 10 and int(text) > 0:
            return int(text)
        self.notices.append(
            f"SKILLOPT_SLEEP_COMPAT_MAX_TOKENS is {shown(text, limit=40)!r}, not a number of tokens; "
            f"{DEFAULT_COMPAT_TOKENS} is used."
        )
        return DEFAULT_COMPAT_TOKENS

    def _extra_body(self) -> dict[str, Any]:
        text = os.environ.get("SKILLOPT_SLEEP_CHAT_EXTRA_BODY", "").strip()
        if not text:
            return {}
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and value:
            return {str(key): item for key, item in value.items() if key not in ("messages", "stream")}
        self.notices.append("SKILLOPT_SLEEP_CHAT_EXTRA_BODY is not a JSON object with entries; it is ignored.")
        return {}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of counts; None when one of them is unknown."""
    known = list(counts)
    return None if None in known else sum(count or 0 for count in known)
