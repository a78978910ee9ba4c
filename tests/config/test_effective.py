"""Every effective setting with its source."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from skillopt.config.effective import effective_json, effective_settings
from skillopt.config.keys import KEYS, PROVIDER_KEYS
from skillopt.config.provider_rows import ROWS
from skillopt.config.resolve import RunConfig

Run = Callable[..., RunConfig]


def test_sources_of_roles_name_label_flag_variable_and_default(run: Run) -> None:
    config = run(
        "model: {backend: qwen, target_qwen_chat_max_tokens: 5}\n",
        flags={"optimizer_model": "o"},
        environ={"QWEN_CHAT_TEMPERATURE": "0.5", "AZURE_OPENAI_ENDPOINT": "https://me:secret@x.openai.azure.com"},
    )
    roles = effective_json(config)["roles"]
    assert roles["optimizer"]["backend"]["value"] == "openai_chat"
    assert roles["optimizer"]["backend"]["source"].startswith("label qwen_chat (")
    assert roles["optimizer"]["model"] == {"value": "o", "source": "flag --optimizer_model"}
    assert roles["optimizer"]["openai_chat endpoint"] == {
        "value": "https://[hidden]@x.openai.azure.com",
        "source": "env AZURE_OPENAI_ENDPOINT",
    }
    assert roles["target"]["model"] == {"value": "Qwen/Qwen3.5-4B", "source": "default of qwen_chat"}
    assert roles["target"]["qwen_chat temperature"] == {"value": 0.5, "source": "env QWEN_CHAT_TEMPERATURE"}
    assert roles["target"]["qwen_chat max_tokens"]["source"].endswith("config.yaml:1")
    assert roles["target"]["qwen_chat api_key"] == {"value": "unset", "source": "default"}
    assert roles["target"]["reasoning effort"]["source"].endswith("; qwen_chat takes none")


def test_every_key_is_there_once(run: Run) -> None:
    config = run("env: {name: mine, extra: 3}\n", environ={})
    groups = effective_settings(config)
    names = [f"{group}.{item.name}" for group, items in groups.items() for item in items]
    assert len(set(names)) == len(names)
    own = {key.dotted for key in KEYS if key not in PROVIDER_KEYS}
    by_role = {"model.optimizer", "model.target", "model.optimizer_backend", "model.target_backend"}
    assert own - by_role <= set(names)
    assert "env.extra" in names
    json.dumps(effective_json(config), allow_nan=False)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_credentials_are_set_or_unset(run: Run, row: object) -> None:
    secret = "sk-not-to-be-shown-1234567890"
    environ = {name: secret for field in row.fields for name in field.env_for(row.roles[0]) if field.secret}  # type: ignore[attr-defined]
    config = run("", flags={f"{row.roles[0]}_backend": row.name}, environ=environ)  # type: ignore[attr-defined]
    shown = effective_json(config)
    assert secret not in json.dumps(shown)
    states = [item["value"] for name, item in shown["roles"][row.roles[0]].items() if name.endswith("api_key")]  # type: ignore[attr-defined]
    assert states == ["set"] * len([field for field in row.fields if field.secret])  # type: ignore[attr-defined]


def test_a_claude_agent_has_an_effort_of_its_own(run: Run) -> None:
    config = run("model: {target_backend: claude_code_exec, claude_code_exec_effort: high}\n", flags={"seed": 1})
    target = effective_json(config)["roles"]["target"]
    assert target["claude_code_exec effort"]["value"] == "high"
    assert target["reasoning effort"] == {"value": "", "source": "default"}
