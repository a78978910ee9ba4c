"""The typed sections and the JSON schema for editors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import skillopt.config as config_package
from skillopt.config.casting import ValueProblem, check_value
from skillopt.config.key import Key
from skillopt.config.keys import KEYS, SECTIONS
from skillopt.config.resolve import resolve
from skillopt.config.schema import build_section, json_schema, unknown_key

_KINDS = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def _fits(schema: dict[str, Any], value: Any) -> bool:
    """Enough of a JSON schema validator for what our schema uses."""
    if "enum" in schema:
        return value in schema["enum"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, int | float) and not isinstance(value, bool):
        kinds = {"integer", "number"} if isinstance(value, int) else {"number"}
        low, high, above = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
        inside = (low is None or value >= low) and (high is None or value <= high) and (above is None or value > above)
        return bool(kinds & set(types)) and inside
    if not any(isinstance(value, _KINDS[name]) for name in types if name in _KINDS):
        return False
    if isinstance(value, dict) and "properties" in schema:
        extra = schema.get("additionalProperties", True)
        known = schema["properties"]
        return all(_fits(known[name], inner) if name in known else bool(extra) for name, inner in value.items())
    return True


@pytest.mark.parametrize("path", sorted(Path("configs").rglob("*.yaml")), ids=str)
def test_shipped_configs_fit_the_json_schema(path: Path) -> None:
    assert _fits(json_schema(), yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"train": {"batchsize": 1}},
        {"train": {"batch_size": 0}},
        {"train": {"seed": "x"}},
        {"optimizer": {"lr_scheduler": "cosin"}},
        {"budget": {"max_calls": 0}},
        {"trian": {}},
        {"evaluation": {"gate_mixed_weight": 1.5}},
    ],
)
def test_json_schema_refuses_what_the_check_refuses(wrong: dict[str, Any]) -> None:
    assert not _fits(json_schema(), wrong)


def test_json_schema_is_complete_and_documented() -> None:
    schema = json.loads(json.dumps(json_schema(), allow_nan=False))
    assert set(schema["properties"]) == {"_base_", *SECTIONS}
    assert schema["additionalProperties"] is False
    for key in KEYS:
        shown = schema["properties"][key.section]["properties"][key.name]
        assert shown["description"] == (f"{key.doc}")
        assert shown["x-flag"] == f"--{key.flag_name}"
    assert schema["properties"]["env"]["additionalProperties"] is True
    assert schema["properties"]["train"]["additionalProperties"] is False
    assert schema["properties"]["train"]["properties"]["seed"]["default"] == 42
    assert _fits(schema, {"optimizer": {"lr_control_mode": "auto"}, "env": {"mine": 3}, "train": None})


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.dotted)
def test_every_default_is_valid(key: Key) -> None:
    assert key.default is None or check_value(key, key.default) == key.default


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(KEYS), _VALUES)
def test_a_value_is_typed_or_refused(key: Key, value: object) -> None:
    try:
        checked = check_value(key, value)
    except ValueProblem as error:
        assert str(error).startswith("must ")
        return
    assert checked == check_value(key, checked)
    if checked is None and key.default is not None:
        return
    model, problems = build_section(key.section, {key.name: value})
    assert not problems
    assert getattr(model, key.name) == checked


def test_unknown_key_without_a_near_one() -> None:
    assert "skillopt config schema" in unknown_key("train.zzzzzzzz")


@pytest.mark.filterwarnings("ignore:.* no effect:UserWarning")
def test_secrets_are_not_in_a_sections_repr() -> None:
    with pytest.warns(DeprecationWarning):
        config = resolve(flags={"minimax_api_key": "sk-hidden-from-repr"}, environ={})
    assert config.model.minimax_api_key == "sk-hidden-from-repr"
    assert "sk-hidden" not in repr(config.model)


def test_package_offers_its_public_names_lazily() -> None:
    for name in config_package.__all__:
        assert callable(getattr(config_package, name))
    with pytest.raises(AttributeError):
        config_package.nothing  # noqa: B018
    code = (
        "import sys, skillopt.config, skillopt.config.keys, skillopt.config.providers, skillopt.config.flags\n"
        "import skillopt.config.envfile, skillopt.cli.arguments\n"
        "print([m for m in ('pydantic', 'yaml', 'openai', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": "."})
    assert done.stdout.strip() == "[]", done.stderr
