"""The public setters of the backends' settings. They act on the active session and its process only.

In every setter None leaves a setting as it is, and what is given for a role wins over what is given for both. A wrong
value raises ConfigError (a ValueError) and changes nothing. The environment is read, never written.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from skillopt.config.provider_row import ROLES, ProviderField
from skillopt.config.providers import get_provider
from skillopt.model.active import configure
from skillopt.model.in_force import validate_exec_sandbox

Setting = str | None
Number = float | str | None
Whole = int | str | None
Switch = bool | str | None

_Blank = Callable[[ProviderField], object]
_CODEX = "codex_exec"


def configure_azure_openai(  # noqa: PLR0913 - a published signature
    *,
    endpoint: Setting = None,
    api_version: Setting = None,
    api_key: Setting = None,
    auth_mode: Setting = None,
    ad_scope: Setting = None,
    managed_identity_client_id: Setting = None,
    optimizer_endpoint: Setting = None,
    optimizer_api_version: Setting = None,
    optimizer_api_key: Setting = None,
    optimizer_auth_mode: Setting = None,
    optimizer_ad_scope: Setting = None,
    optimizer_managed_identity_client_id: Setting = None,
    target_endpoint: Setting = None,
    target_api_version: Setting = None,
    target_api_key: Setting = None,
    target_auth_mode: Setting = None,
    target_ad_scope: Setting = None,
    target_managed_identity_client_id: Setting = None,
) -> None:
    """Set address and sign-in of `openai_chat`. A blank text leaves a setting as it is."""
    _set("openai_chat", locals(), _unchanged)


def configure_openai_compatible(  # noqa: PLR0913 - a published signature
    *,
    base_url: Setting = None,
    api_key: Setting = None,
    model: Setting = None,
    temperature: Number = None,
    timeout_seconds: Number = None,
    max_tokens: Whole = None,
    optimizer_base_url: Setting = None,
    optimizer_api_key: Setting = None,
    optimizer_model: Setting = None,
    target_base_url: Setting = None,
    target_api_key: Setting = None,
    target_model: Setting = None,
) -> None:
    """Set the `openai_compatible` backend. A blank address or model keeps the old one, a blank key clears it."""
    _set("openai_compatible", locals(), _cleared)


def configure_qwen_chat(  # noqa: PLR0913 - a published signature
    *,
    base_url: Setting = None,
    api_key: Setting = None,
    temperature: Number = None,
    timeout_seconds: Number = None,
    max_tokens: Whole = None,
    enable_thinking: Switch = None,
    thinking_mode: Switch = None,
    use_max_completion_tokens: Switch = None,
    optimizer_base_url: Setting = None,
    optimizer_api_key: Setting = None,
    optimizer_temperature: Number = None,
    optimizer_timeout_seconds: Number = None,
    optimizer_max_tokens: Whole = None,
    optimizer_enable_thinking: Switch = None,
    optimizer_thinking_mode: Switch = None,
    optimizer_use_max_completion_tokens: Switch = None,
    target_base_url: Setting = None,
    target_api_key: Setting = None,
    target_temperature: Number = None,
    target_timeout_seconds: Number = None,
    target_max_tokens: Whole = None,
    target_enable_thinking: Switch = None,
    target_thinking_mode: Switch = None,
    target_use_max_completion_tokens: Switch = None,
) -> None:
    """Set the `qwen_chat` backend. A blank key clears it, a blank temperature (or `off`) is not sent.

    Other blanks leave a setting as it is. `thinking_mode` and the older `enable_thinking` must not contradict each
    other.
    """
    _set("qwen_chat", locals(), _cleared)


def configure_minimax_chat(
    *,
    region: Setting = None,
    base_url: Setting = None,
    api_key: Setting = None,
    temperature: Number = None,
    timeout_seconds: Number = None,
    max_tokens: Whole = None,
    enable_thinking: Switch = None,
) -> None:
    """Set the `minimax_chat` backend for both roles. An address that was given holds, whatever region comes later.

    A blank key clears it, a blank region is the default one, a blank temperature is not sent.
    """
    _set("minimax_chat", locals(), _cleared)


def configure_codex_exec(  # noqa: PLR0913 - a published signature
    *,
    path: Setting = None,
    sandbox: Setting = None,
    profile: Setting = None,
    full_auto: Switch = None,
    reasoning_effort: Setting = None,
    use_sdk: Switch = None,
    network_access: Switch = None,
    web_search: Switch = None,
    approval_policy: Setting = None,
) -> None:
    """Set the `codex_exec` backend. Blank is the built-in value. `full_auto` has no effect any more."""
    given = {name: value for name, value in locals().items() if name != "full_auto"}
    if full_auto is not None:
        _warn_full_auto("full_auto")
    if sandbox is not None:
        given["sandbox"] = validate_exec_sandbox(sandbox)
    _set(_CODEX, given, _default)


def configure_codex_exec_from_config(cfg: Mapping[str, Any]) -> None:
    """Set the `codex_exec` backend by a configuration, flat or in sections, and by nothing else.

    What earlier calls had set is taken back first, so that one run's sandbox does not reach the next. Blank or missing
    keys leave the environment, then the built-in value, in charge; older names of the keys count.
    """
    from skillopt.config.load import flatten_config

    flat = flatten_config(cfg)
    keys = [field.key for field in get_provider(_CODEX).fields if field.key]
    if flat.get("codex_exec_full_auto") not in (None, "", False):
        _warn_full_auto("codex_exec_full_auto")
    configure({key: flat[key] for key in keys if flat.get(key) not in (None, "")}, dropped=keys, checked=_CODEX)


def configure_claude_code_exec(
    *,
    path: Setting = None,
    profile: Setting = None,
    use_sdk: Switch = None,
    effort: Setting = None,
    max_thinking_tokens: Whole = None,
) -> None:
    """Set the `claude_code_exec` backend. Blank is the built-in value."""
    _set("claude_code_exec", locals(), _default)


def configure_cursor_exec(*, path: Setting = None, sandbox: Setting = None) -> None:
    """Set the `cursor_exec` backend. Blank is the built-in value."""
    _set("cursor_exec", locals(), _default)


def configure_copilot_exec(*, path: Setting = None, home: Setting = None, allow_all_tools: Switch = None) -> None:
    """Set the `copilot_exec` backend. `path` and `home` are those of `copilot_chat` too. Blank is built in."""
    _set("copilot_exec", locals(), _default)


def configure_copilot_chat(
    *,
    path: Setting = None,
    home: Setting = None,
    optimizer_model: Setting = None,
    target_model: Setting = None,
    timeout: Whole = None,
) -> None:
    """Set the `copilot_chat` backend. `path` and `home` are those of `copilot_exec` too. Blank is built in."""
    given = {**locals(), "timeout_seconds": timeout}
    _set("copilot_chat", given, _default)


def _warn_full_auto(name: str) -> None:
    text = f"{name} is deprecated and ignored; say what the agent may do with the sandbox and the approval policy"
    warnings.warn(text, FutureWarning, stacklevel=3)


def _unchanged(field: ProviderField) -> object:  # noqa: ARG001 - one of three rules
    """A blank says nothing."""
    return None


def _cleared(field: ProviderField) -> object:
    """A blank clears a credential or what need not be sent, and is the default of a choice; else it says nothing."""
    if field.secret or "" in field.omit_words:
        return ""
    return field.default if field.choices and not field.older_field else None


def _default(field: ProviderField) -> object:
    """A blank is the built-in value."""
    return "" if field.default is None else field.default


def _set(backend: str, values: Mapping[str, Any], blank: _Blank) -> None:
    """Take the arguments of a setter. What each role gets is said for that role, so that the last word holds."""
    row = get_provider(backend)
    options: dict[str, object] = {}
    for field in row.all_fields:
        both = _given(values.get(field.name), field, blank)
        if field.role_key:
            for role in row.roles:
                own = _given(values.get(f"{role}_{field.name}"), field, blank)
                options[field.role_key.format(role=role)] = both if own is None else own
        elif field.key:
            options[field.key] = both
    given = {name: value for name, value in options.items() if value is not None}
    configure(given, dropped=_superseded(row.fields, given), checked=backend)


def _given(value: object, field: ProviderField, blank: _Blank) -> object:
    if isinstance(value, str):
        return value.strip() or blank(field)
    if isinstance(value, bool) and field.type == "str" and not field.choices:
        return str(value).lower()
    return value


def _superseded(fields: tuple[ProviderField, ...], given: Mapping[str, object]) -> set[str]:
    """Keys of earlier calls that would contradict what is given now: the older form of a setting, or the newer."""
    named = {field.name: field for field in fields}
    dropped: set[str] = set()
    for field in fields:
        for role in ROLES if field.older_field else ():
            pair = [form.role_key.format(role=role) for form in (field, named[field.older_field])]
            if any(key in given for key in pair):
                dropped |= {key for key in pair if key not in given}
    return dropped
