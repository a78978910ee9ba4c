"""MiniMax's own service: Chat Completions in two regions, with a `thinking` field.

Settings (see the provider's row): those of every Chat Completions backend, and `region` and `enable_thinking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from skillopt.errors import ConfigError
from skillopt.model.chat_completions import Dialect, complete_with
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.types import JsonObject, RoleConfig

REGION_BASE_URLS: Mapping[str, str] = MappingProxyType(
    {"global_en": "https://api.minimax.io/v1", "cn_zh": "https://api.minimaxi.com/v1"}
)
"""Region to its base URL."""

DEFAULT_REGION = "global_en"

_STATUS: Mapping[int, int] = MappingProxyType(
    {
        **dict.fromkeys((1002, 1039, 1041, 2056), 429),  # requests, tokens, connections, the plan's window
        **dict.fromkeys((1004, 2049), 401),
        1008: 402,
        1001: 408,
        **dict.fromkeys((1026, 1027, 1042, 2013), 400),
    }
)
"""`base_resp.status_code`, with which the service answers 200, to the status that it stands for (public error list)."""


def complete(call: ModelCall, role: RoleConfig, ctx: CallContext) -> ModelReply:
    """One request to `<base_url>/chat/completions`. Raises the classes of `skillopt.errors.ModelError`."""
    return complete_with(DIALECT, call, role, ctx)


def normalize_region(region: str | None) -> str:
    """A region by its canonical name: case and `-` for `_` do not matter, blank is the default.

    Raises ConfigError for one that there is not.
    """
    name = str(region or "").strip().lower().replace("-", "_") or DEFAULT_REGION
    if name not in REGION_BASE_URLS:
        raise ConfigError(f"Unsupported MiniMax region {region!r}; expected one of {', '.join(REGION_BASE_URLS)}")
    return name


def base_url_for_region(region: str | None) -> str:
    """The base URL of a region, by any spelling of its name. Raises ConfigError for one that there is not."""
    return REGION_BASE_URLS[normalize_region(region)]


def base_url_of(settings: Mapping[str, Any]) -> str:
    """The address that a role's settings mean: `base_url` when it is given, whatever the region says."""
    return str(settings.get("base_url") or "").strip() or base_url_for_region(settings.get("region"))


def thinking_type(model: str, *, enabled: bool) -> str:
    """`adaptive` or `disabled`. The M2 models cannot be told not to think."""
    return "adaptive" if enabled or model.lower().startswith("minimax-m2") else "disabled"


def _thinking(call: ModelCall, role: RoleConfig) -> JsonObject:
    enabled = bool(role.settings.get("enable_thinking"))
    return {"thinking": {"type": thinking_type(call.model or role.model, enabled=enabled)}}


def _body_status(data: Mapping[str, Any]) -> int:
    """The status behind `base_resp`: 0 when it reports success, and 500 for a code that is not in the list."""
    said = data.get("base_resp")
    code = said.get("status_code") if isinstance(said, Mapping) else 0
    return _STATUS.get(code, 500) if isinstance(code, int) and code else 0


DIALECT = Dialect(
    extras=_thinking,
    tool_prefix="minimax_tool_",
    base_url=lambda role: base_url_of(role.settings),
    think_tags="written",
    body_status=_body_status,
)
"""The service leaves thinking in the text unless it is asked to split it off."""
