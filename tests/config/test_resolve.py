"""Precedence, checks, derived values, provenance, secrets (C028 C079 C113 C115 C119 C121 C253; rows 20 22 23)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.config.key import Key
from skillopt.config.keys import KEYS
from skillopt.config.provider_row import ROLES
from skillopt.config.provider_rows import ROWS
from skillopt.config.resolve import RunConfig, check_available, check_env_keys, resolve
from skillopt.config.tables import RETIRED
from skillopt.errors import ConfigError

Run = Callable[..., RunConfig]
BASE = Path("configs/_base_/default.yaml")
SECRET = "sk-very-secret-value-1234567890"


# --- everything together -------------------------------------------------------------------------------------------


def test_nothing_given_is_the_built_in_values() -> None:
    config = resolve(environ={})
    assert (config.train.batch_size, config.optimizer.learning_rate, config.evaluation.gate_metric) == (40, 4, "hard")
    assert config.budget.max_calls is None
    assert config.env.name == ""
    assert config.source("seed") == "default"
    assert config.config_path is None


@pytest.mark.parametrize("path", sorted(Path("configs").rglob("*.yaml")), ids=str)
def test_shipped_configs_resolve(path: Path) -> None:
    config = resolve(path, environ={}, command="eval")
    json.dumps(config.public(), allow_nan=False)
    json.dumps(config.fingerprint_parts(), allow_nan=False)


def test_shipped_base_without_label_is_azure() -> None:
    config = resolve(BASE, environ={})
    assert config.label == "azure_openai"
    assert {(r.backend, r.model, r.effort) for r in config.roles.values()} == {("openai_chat", "gpt-5.5", "medium")}
    assert config.optimizer.lr_scheduler == "cosine"
    assert config.model.rewrite_reasoning_effort == ""


def test_base_leaves_every_backend_setting_to_the_environment() -> None:
    for row in ROWS:
        for role in row.roles:
            environ = {f"{role.upper()}_BACKEND": "unused"}
            for field in row.fields:
                value = {"int": "77", "float": "7", "bool": "true"}.get(field.type, "seven")
                environ[field.env_for(role)[0]] = field.choices[-1] if field.choices else value
            config = resolve(BASE, flags={f"{role}_backend": row.name}, environ=environ)
            for field in row.fields:
                assert config.source(f"{role}.{field.name}") == f"env {field.env_for(role)[0]}"


# --- precedence ----------------------------------------------------------------------------------------------------

_LAYERS = ["default", "env", "base", "child", "option", "flag"]


@pytest.mark.parametrize("highest", range(len(_LAYERS)))
def test_precedence(write: Any, highest: int) -> None:
    name = "openai_compatible_max_tokens"
    write("model: {target_backend: openai_compatible}\n" + (f"{name}: 2\n" if highest >= 2 else ""), "base.yaml")
    child = write("_base_: base.yaml\n" + (f"model: {{{name}: 3}}\n" if highest >= 3 else ""))
    config = resolve(
        child,
        environ={"OPENAI_COMPATIBLE_MAX_TOKENS": "1"} if highest >= 1 else {},
        cfg_options=[f"model.{name}=4"] if highest >= 4 else [],
        flags={name: 5} if highest >= 5 else {},
    )
    expected = [8000, 1, 2, 3, 4, 5][highest]
    assert config.roles["target"].settings["max_tokens"] == expected
    source = config.source("target.max_tokens")
    marks = ["default", "env OPENAI_COMPATIBLE_MAX_TOKENS", "base.yaml:2", "config.yaml:2",
             f"--cfg-options model.{name}", f"flag --{name}"]  # fmt: skip
    assert source.endswith(marks[highest])


_OLDER = {(row.name, field.older_field) for row in ROWS for field in row.fields if field.older_field}
_FIELDS = [
    (row, field, role)
    for row in ROWS
    for field in row.all_fields
    for role in row.roles
    if (row.name, field.name) not in _OLDER  # what an older form says becomes a value of the newer one
]


def _in_words(field: Any) -> tuple[str, object]:
    """A value that a variable may hold and that is not the default, and the same in its own type."""
    if field.choices:
        other = next(choice for choice in field.choices if choice != field.default)
        return other, other
    if field.type == "bool":
        return str(not field.default).lower(), not field.default
    if field.type in ("int", "float"):
        number = 97 + (field.minimum or 0)
        return f"{number:g}", number
    return ("a,b", ("a", "b")) if field.type == "list" else ("from-env", "from-env")


@pytest.mark.parametrize(
    ("row", "field", "role"), _FIELDS, ids=[f"{row.name}-{field.name}-{role}" for row, field, role in _FIELDS]
)
def test_a_blank_key_leaves_the_environment_in_charge_of_every_field(run: Run, row: Any, field: Any, role: str) -> None:
    text, value = _in_words(field)
    names = field.keys_for(role)
    for variable in field.env_for(role):
        for blank in ('""', "null"):
            for keys in (names, *([name] for name in names if len(names) > 1)):
                keys_of_roles = [f"{role}_backend: {row.name}", 'optimizer: ""', 'target: ""']
                lines = [*keys_of_roles, *(f"{name}: {blank}" for name in keys)]
                config = run(f"model: {{{', '.join(lines)}}}\n", environ={variable: text})
                settings = {**config.roles[role].settings, "model": config.roles[role].model}
                assert settings[field.name] == value
                assert config.source(f"{role}.{field.name}") == f"env {variable}"


@pytest.mark.parametrize("blank", ['""', "null", "", "~"])
def test_blank_in_a_file_leaves_the_environment_in_charge(run: Run, blank: str) -> None:
    config = run(
        f"model: {{target_backend: openai_compatible, openai_compatible_base_url: {blank}}}\n",
        environ={"OPENAI_COMPATIBLE_BASE_URL": "http://here/v1"},
    )
    assert config.roles["target"].settings["base_url"] == "http://here/v1"


def test_explicit_blank_clears(run: Run) -> None:
    flags = {"backend": "openai_compatible", "openai_compatible_api_key": ""}
    config = run("", flags=flags, environ={"OPENAI_COMPATIBLE_API_KEY": SECRET})
    assert config.roles["target"].settings["api_key"] == ""


def test_role_wins_over_shared(run: Run) -> None:
    text = (
        "model:\n  backend: compat\n  openai_compatible_base_url: http://shared\n"
        "  target_openai_compatible_base_url: http://t\n"
    )
    environ = {"OPENAI_COMPATIBLE_TEMPERATURE": "0.5", "OPTIMIZER_OPENAI_COMPATIBLE_TEMPERATURE": "0"}
    config = run(text, environ=environ)
    optimizer, target = (config.roles[role].settings for role in ROLES)
    assert (optimizer["base_url"], target["base_url"]) == ("http://shared", "http://t")
    assert (optimizer["temperature"], target["temperature"]) == (0.0, 0.5)


@pytest.mark.parametrize("word", ["none", "off", "null", ""])
def test_temperature_that_is_not_sent(run: Run, word: str) -> None:
    environ = {"QWEN_CHAT_TEMPERATURE": word}
    assert run("model: {target_backend: qwen}\n", environ=environ).roles["target"].settings["temperature"] is None
    flags = {"target_backend": "qwen_chat", "qwen_chat_temperature": word}
    assert run("", flags=flags).roles["target"].settings["temperature"] is None


def test_bad_environment_value_names_the_variable_and_hides_secrets(run: Run) -> None:
    with pytest.raises(ConfigError, match="environment variable OPENAI_COMPATIBLE_MAX_TOKENS must be a whole number"):
        run("model: {backend: compat}\n", environ={"OPENAI_COMPATIBLE_MAX_TOKENS": "many"})
    run("model: {backend: qwen}\n", environ={"OPENAI_COMPATIBLE_MAX_TOKENS": "many"})


@pytest.mark.parametrize(
    ("word", "value"), [("false", False), ("0", False), ("off", False), ("No", False), ("1", True)]
)
def test_booleans_in_the_environment(run: Run, word: str, value: bool) -> None:
    config = run("model: {backend: codex}\n", environ={"CODEX_EXEC_WEB_SEARCH": word})
    assert config.roles["target"].settings["web_search"] is value
    with pytest.raises(ConfigError, match="CODEX_EXEC_WEB_SEARCH"):
        run("model: {backend: codex}\n", environ={"CODEX_EXEC_WEB_SEARCH": "sometimes"})


# --- checks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train: {batchsize: 8}", ["config.yaml:1", "unknown key train.batchsize", "did you mean train.batch_size?"]),
        ("train: {edit_budget: 8}", ["did you mean optimizer.learning_rate?"]),
        ("gradient: {learning_rate: 8}", ["did you mean optimizer.learning_rate?"]),
        ("env: {batch_size: 8}", ["unknown key env.batch_size", "did you mean train.batch_size?"]),
        ("trian: {seed: 8}\ntrain: {seed: 1}", ["unknown key trian", "did you mean train?"]),
        ("trian: {seed: 8}", ["unknown key trian", "did you mean train?"]),
        ("other: {seed: 8}", ["unknown key other"]),
        ("train: 3\nenv: {name: x}", ["train must be a mapping of keys, not of type int"]),
        ("model: on", ["model must be a mapping"]),
        ("train: {seed: '1'}", ["train.seed must be a whole number", "'1'"]),
        ("train: {seed: 1.5}", ["train.seed", "1.5"]),
        ("train: {seed: true}", ["train.seed must be a whole number"]),
        ("train: {batch_size: 0}", ["train.batch_size must be a whole number of at least 1, not 0"]),
        ("train: {num_epochs: -1}", ["at least 0"]),
        ("gradient: {minibatch_size: 0}", ["gradient.minibatch_size"]),
        ("gradient: {merge_batch_size: 1}", ["gradient.merge_batch_size must be a whole number of at least 2"]),
        ("gradient: {merge_batch_size: 0}", ["at least 2"]),
        ("gradient: {merge_batch_size: -4}", ["at least 2"]),
        ("gradient: {analyst_workers: 0}", ["at least 1"]),
        ("env: {workers: 0}", ["at least 1"]),
        ("env: {max_error_rate: 1.5}", ["env.max_error_rate must be a number from 0 to 1"]),
        ("evaluation: {gate_mixed_weight: 1.5}", ["from 0 to 1"]),
        ("evaluation: {gate_mixed_weight: -1}", ["from 0 to 1"]),
        ("evaluation: {gate_mixed_weight: .nan}", ["from 0 to 1", "nan"]),
        ("evaluation: {use_gate: 0}", ["evaluation.use_gate must be true or false, not 0"]),
        ("evaluation: {gate_metric: softt}", ["hard, soft, mixed", "did you mean soft?"]),
        ("optimizer: {lr_scheduler: cosin}", ["constant, linear, cosine, autonomous", "did you mean cosine?"]),
        ("optimizer: {skill_update_mode: pach}", ["did you mean patch?"]),
        ("optimizer: {learning_rate: 2, min_learning_rate: 3}", ["min_learning_rate must be at most", "(2)", "3"]),
        ("optimizer: {learning_rate: -1}", ["at least 0"]),
        ("model: {target: 1e3}", ["model.target must be text", 'put it in quotes: "1000.0"']),
        ("model: {target: 4.1}", ['put it in quotes: "4.1"']),
        ("model: {target: true}", ['put it in quotes: "true"']),
        ("model: {codex_exec_sandbox: none}", ["read-only, workspace-write, danger-full-access"]),
        ("model: {codex_exec_network_access: sometimes}", ["model.codex_exec_network_access must be true or false"]),
        ("model: {backend: opena_compatible}", ["config.yaml:1: model.backend", "did you mean openai_compatible?"]),
        ("model: {optimizer_backend: cursor}", ["model.optimizer_backend", "Unsupported optimizer backend"]),
        ("model: {target_backend: bootstrap_demos}", ["Unsupported target backend"]),
        ("model: {backend: bootstrap_demos}", ["model.optimizer_backend"]),
        ("model: {prices: {m: {input: -1, output: 1}}}", ["model.prices must give 'm' prices of at least 0, not -1"]),
        ("model: {prices: {m: 3}}", ["model.prices must give 'm' the prices input and output"]),
        ("model: {qwen_chat_max_tokens: 0}", ["model.qwen_chat_max_tokens", "at least 1"]),
        ("env: {scorer_options: 3}", ["env.scorer_options must be a mapping"]),
        ("env: {split_mode: dir}", ["ratio, hash, split_dir"]),
        ("budget: {max_calls: 0}", ["budget.max_calls must be a whole number above 0, not 0"]),
        ("budget: {max_cost_usd: -1}", ["above 0"]),
        ("budget: {max_tokens: 0}", ["above 0"]),
        ("budget: {max_seconds: 0}", ["above 0"]),
    ],
)
def test_wrong_values_are_refused_in_one_sentence(run: Run, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        run(text + "\n")
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    assert caught.value.exit_code == 2


def test_several_problems_come_together(run: Run) -> None:
    with pytest.raises(ConfigError) as caught:
        run("train:\n  a1: 1\n  a2: 1\n  seed: x\nbudget:\n  max_calls: 0\n  b: 1\n  c: 1\n  d: 1\n")
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "... and 2 more"


def test_yaml_surprises_that_are_accepted(run: Run) -> None:
    config = run("train: {seed: 012}\nevaluation: {use_gate: no, eval_test: 'yes'}\nmodel: {target: on}\n")
    assert config.train.seed == 12
    assert config.evaluation.use_gate is False
    assert config.evaluation.eval_test is True
    assert config.model.target == "on"


def test_place_of_a_wrong_flag_or_option(run: Run) -> None:
    with pytest.raises(ConfigError, match=r"^flag --edit_budget: optimizer.learning_rate must be"):
        run("", flags={"edit_budget": -3})
    with pytest.raises(ConfigError, match=r"^--cfg-options train.seed: train.seed must be a whole number, not 'x'"):
        run("", cfg_options=["train.seed=x"])
    with pytest.raises(ConfigError, match=r"^--cfg-options seeed: unknown key seeed; did you mean train.seed"):
        run("train: {seed: 1}\n", cfg_options=["seeed=1"])


@pytest.mark.parametrize(
    ("given", "canonical"),
    [("manual", "fixed"), ("AUTO", "autonomous"), ("no-lr", "none"), ("off", "none"), ("scheduled", "fixed")],
)
def test_modes_are_normalised(run: Run, given: str, canonical: str) -> None:
    assert run(f"optimizer: {{lr_control_mode: '{given}'}}\n").optimizer.lr_control_mode == canonical
    assert run("", flags={"lr_control_mode": given}).flat()["lr_control_mode"] == canonical


@pytest.mark.parametrize(
    ("key", "given", "canonical"),
    [
        ("skill_update_mode", "edits", "patch"),
        ("skill_update_mode", "rewrite", "rewrite_from_suggestions"),
        ("skill_update_mode", "full_rewrite", "full_rewrite_minibatch"),
        ("longitudinal_pair_policy", "10_01", "changed"),
        ("longitudinal_pair_policy", "same", "unchanged"),
        ("longitudinal_pair_policy", "all", "mixed"),
    ],
)
def test_other_modes_are_normalised(run: Run, key: str, given: str, canonical: str) -> None:
    assert run("", cfg_options=[f"optimizer.{key}={given}"]).flat()[key] == canonical


def test_minimum_budget_follows_a_small_budget_unless_given(run: Run) -> None:
    config = run("optimizer: {learning_rate: 1}\n")
    assert config.optimizer.min_learning_rate == 1
    assert config.source("min_edit_budget") == "derived from optimizer.learning_rate"


def test_none_means_unlimited(run: Run) -> None:
    text = "budget: {max_calls: 5, max_seconds: 5}\n"
    config = run(text, cfg_options=["budget.max_calls=none"], flags={"budget_max_seconds": "null"})
    assert config.budget.max_calls is None
    assert config.budget.max_seconds is None
    assert run("budget: {max_calls: null}\n").budget.max_calls is None


# --- every key does something (C121) -------------------------------------------------------------------------------


def _whole_number(key: Key) -> int:
    if key.name == "min_learning_rate":
        return 1
    return 97 + int(key.minimum or 0)


def _other(key: Key) -> object:
    current = key.default
    if key.choices:
        return next(choice for choice in key.choices[::-1] if choice != current)
    return {
        "int": _whole_number(key),
        "float": 0.25 + (key.minimum or 0),
        "bool": not current,
        "list": ["a", "b"],
        "map": {"a": 1},
        "prices": {"m": {"input": 1.0, "output": 2.0}},
        "str": "elsewhere",
    }[key.type]


def _backend_of(key: Key) -> str:
    return next(
        row.name for row in ROWS for field in row.all_fields for role in row.roles if key.name in field.keys_for(role)
    )


_NAMES = {"backend": "mock_chat", "optimizer_backend": "mock_chat", "target_backend": "mock_chat"}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.dotted)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.* no effect:UserWarning")
def test_every_key_changes_the_resolved_config(write: Any, key: Key, tmp_path: Path) -> None:
    fixed: dict[str, object] = {"env": {"out_root": str(tmp_path / "run")}, "model": {}}
    if key.group.startswith("backend "):
        row = next(row for row in ROWS if row.name == _backend_of(key))
        fixed["model"] = {**{f"{role}_backend": row.name for role in row.roles}, "optimizer": "", "target": ""}
    value = _NAMES.get(key.name, _other(key)) if key.section == "model" else _other(key)
    if key.name == "skill_init":
        (tmp_path / "elsewhere").write_text("skill", encoding="utf-8")
        value = str(tmp_path / "elsewhere")
    changed = {**fixed, key.section: {**fixed.get(key.section, {}), key.name: value}}  # type: ignore[dict-item]
    before = resolve(write(json.dumps(fixed), "before.yaml"), environ={})
    after = resolve(write(json.dumps(changed), "after.yaml"), environ={})
    assert _view(before) != _view(after)
    flat = {**before_flat(fixed), key.flat_name: value}
    assert _view(resolve(write(json.dumps(flat), "flat.yaml"), environ={})) == _view(after)


def before_flat(fixed: dict[str, Any]) -> dict[str, Any]:
    names = {"optimizer": "optimizer_model", "target": "target_model"}
    return {**fixed["env"], **{names.get(name, name): value for name, value in fixed["model"].items()}}


def _view(config: RunConfig) -> object:
    sections = (config.train, config.gradient, config.optimizer, config.evaluation, config.env, config.budget)
    roles = [(role, dict(role.settings)) for role in config.roles.values()]
    own = {key.name: getattr(config.model, key.name) for key in KEYS if key.section == "model" and not key.lenient}
    return sections, roles, own


# --- retired keys and credentials ----------------------------------------------------------------------------------


@pytest.mark.parametrize("item", RETIRED, ids=lambda item: item.dotted)
@pytest.mark.parametrize("form", ["structured", "flat"])
def test_retired_keys_warn_once_and_have_no_effect(run: Run, item: Any, form: str) -> None:
    text = f"{item.section}: {{{item.name}: 0}}\n" if form == "structured" else f"{item.flat}: 0\nseed: 3\n"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        config = run(text, flags={item.flat: 0}, cfg_options=[f"{item.dotted}=0"])
    assert [w.category for w in caught] == [FutureWarning]
    message = str(caught[0].message)
    for place in ("config.yaml:1", f"--cfg-options {item.dotted}", f"flag --{item.flat}"):
        assert place in message
    assert item.flat not in config.flat()
    assert config.train.seed == (3 if form == "flat" else 42)


@pytest.mark.parametrize(
    ("flag", "variable"),
    [
        ("azure_api_key", "AZURE_OPENAI_API_KEY"),
        ("azure_openai_api_key", "AZURE_OPENAI_API_KEY"),
        ("optimizer_azure_openai_api_key", "OPTIMIZER_AZURE_OPENAI_API_KEY"),
        ("target_azure_openai_api_key", "TARGET_AZURE_OPENAI_API_KEY"),
        ("qwen_chat_api_key", "QWEN_CHAT_API_KEY"),
        ("target_qwen_chat_api_key", "TARGET_QWEN_CHAT_API_KEY"),
        ("minimax_api_key", "MINIMAX_API_KEY"),
        ("openai_compatible_api_key", "OPENAI_COMPATIBLE_API_KEY"),
    ],
)
@pytest.mark.filterwarnings("ignore:.* no effect:UserWarning")
def test_credentials_outside_the_environment_warn(run: Run, flag: str, variable: str) -> None:
    for given in ({"flags": {flag: SECRET}}, {"cfg_options": [f"model.{flag}={SECRET}"]}, {}):
        text = "" if given else f"model: {{{flag}: {SECRET}}}\n"
        with pytest.warns(DeprecationWarning, match=rf"\b{variable}\b") as caught:
            run(text, **given)
        assert SECRET not in str(caught[0].message)
        assert ("managed_identity" in str(caught[0].message)) == ("AZURE" in variable)
    run("", flags={flag: ""})


@pytest.mark.parametrize("name", ["env.hub_token", "env.my-api-key", "env.db_password", "env.client_secret"])
def test_unknown_credentials_are_caught_by_their_ending(run: Run, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=name.removeprefix("env.")) as caught:
        config = run("", cfg_options=[f"{name}={SECRET}"])
    assert SECRET not in str(caught[0].message)
    assert config.public()[name.removeprefix("env.")] == f"set (--cfg-options {name})"
    assert SECRET not in json.dumps([config.flat(), config.public(), config.fingerprint_parts()])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("row", [row for row in ROWS if any(f.secret for f in row.fields)], ids=lambda row: row.name)
def test_secrets_never_leave_the_roles(run: Run, row: Any) -> None:
    fields = [field for field in row.fields if field.secret]
    names = [name for field in fields for role in ROLES for name in field.keys_for(role)]
    roles = "".join(f"  {role}_backend: {row.name}\n" for role in row.roles)
    text = "model:\n" + roles + "".join(f"  {name}: {SECRET}\n" for name in dict.fromkeys(names))
    for config in (
        run(text),
        run("model:\n" + roles, flags=dict.fromkeys(names, SECRET)),
        run("model:\n" + roles, environ={fields[0].env[-1]: SECRET}),
    ):
        assert config.roles["target"].settings[fields[0].name] == SECRET
        shown = json.dumps([config.flat(), config.public(), config.fingerprint_parts(), repr(config), str(config)])
        assert SECRET not in shown
        assert config.public()[f"target_{fields[0].key}"].startswith("set (")


def test_public_says_where_a_secret_comes_from(run: Run) -> None:
    text = "model: {backend: openai_compatible}\n"
    environ = {"TARGET_OPENAI_COMPATIBLE_API_KEY": SECRET}
    public = run(text, environ=environ).public()
    assert public["target_openai_compatible_api_key"] == "set (env TARGET_OPENAI_COMPATIBLE_API_KEY)"
    assert public["optimizer_openai_compatible_api_key"] == "unset"


def test_addresses_lose_their_passwords(run: Run) -> None:
    config = run("model: {backend: compat, openai_compatible_base_url: 'https://me:pass@host/v1'}\n")
    shown = json.dumps([config.public(), config.fingerprint_parts()])
    assert "me:pass" not in shown
    assert "https://[hidden]@host/v1" in shown


# --- what a run gets -----------------------------------------------------------------------------------------------


def test_fingerprint_ignores_what_cannot_change_a_result(run: Run) -> None:
    same = run("").fingerprint_parts()
    ignored = {
        "num_epochs": 9, "analyst_workers": 2, "workers": 3, "model_retries": 1, "model_timeout_seconds": 5,
        "max_concurrency": 2, "requests_per_minute": 9, "budget_max_calls": 7, "out_root": "x", "exec_timeout": 1,
        "max_error_rate": 0.5, "item_retries": 0, "model_prices": {"m": {"input": 1, "output": 1}},
    }  # fmt: skip
    assert run("", flags=ignored).fingerprint_parts() == same
    counted = {"seed": 1, "batch_size": 2, "gate_metric": "soft", "target_model": "x", "reasoning_effort": "low",
               "limit": 3, "backend": "compat", "scorer": "f1"}  # fmt: skip
    for name, value in counted.items():
        assert run("", flags={name: value}).fingerprint_parts() != same, name


def test_fingerprint_has_no_secret_and_no_timeout(run: Run) -> None:
    def parts(**environ: str) -> dict[str, Any]:
        return run("model: {backend: compat}\n", environ=environ).fingerprint_parts()

    assert parts(OPENAI_COMPATIBLE_API_KEY=SECRET, OPENAI_COMPATIBLE_TIMEOUT_SECONDS="3") == parts()
    assert parts(OPENAI_COMPATIBLE_BASE_URL="http://x") != parts()


def test_run_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train = Path(run("", flags={"env": "jsonl", "optimizer_model": "org/m"}).env.out_root)
    assert train.parent == tmp_path / "outputs"
    assert train.name.startswith("skillopt_jsonl_org-m_2")
    score = Path(run("", flags={"env": "jsonl", "target_model": "org/t"}, command="eval").env.out_root)
    assert score.name.startswith("eval_jsonl_org-t_2")
    given = run("env: {out_root: here}\n")
    assert given.env.out_root == str(tmp_path / "here")
    assert given.source("out_root").endswith("config.yaml:1")
    assert list(tmp_path.iterdir()) == [tmp_path / "config.yaml"]


def test_skill_init_that_does_not_exist(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("skill.md").write_text("x", encoding="utf-8")
    assert run("env: {skill_init: skill.md}\n").env.skill_init == "skill.md"
    with pytest.raises(ConfigError, match=r"env.skill_init: skil.md does not exist; did you mean skill.md\?"):
        run("env: {skill_init: skil.md}\n")
    with pytest.raises(ConfigError, match="is a folder"):
        run("env: {skill_init: .}\n")
    assert run('env: {skill_init: ""}\n').env.skill_init == ""
    assert run("env: {skill_init: skil.md}\n", command="eval").env.skill_init == "skil.md"


def test_availability_is_checked_apart(run: Run) -> None:
    config = run("model: {backend: codex_exec, codex_exec_use_sdk: skd}\n")
    with pytest.raises(ConfigError, match=r"config.yaml:1: use_sdk of codex_exec is 'skd'"):
        check_available(config)
    check_available(run("model: {backend: local_chat}\n"))


def test_env_keys_are_checked_against_the_environment(run: Run) -> None:
    config = run("env:\n  name: mine\n  my_key: 3\n  workers: 2\n  exec_timeout: 5\n")
    check_env_keys(config, ["my_key"])
    assert config.env_extras == {"my_key": 3}
    assert config.env.my_key == 3
    assert config.flat()["my_key"] == 3
    with pytest.raises(ConfigError, match=r"config.yaml:3: .*mine has no key env.my_key; did you mean env.my_keys\?"):
        check_env_keys(config, ["my_keys"])
    with pytest.raises(ConfigError, match=r"flag --mode: .*env.mode"):
        check_env_keys(run("", flags={"mode": "multi"}), ["scorer"])


def test_flat_file_passes_unknown_keys_to_the_environment(run: Run) -> None:
    config = run("env: mine\nseed: 1\nmy_key: 2\n", cfg_options=["other=3"], flags={"third": "4"})
    assert config.env_extras == {"my_key": 2, "other": 3, "third": 4}
    typo = run("env: mine\nbatchsize: 1\n")
    with pytest.raises(ConfigError, match=r"config.yaml:2: .*batchsize; did you mean train.batch_size\?"):
        check_env_keys(typo, [])


def test_flat_and_structured_give_the_same(run: Run) -> None:
    structured = run(
        "model: {target: a, backend: compat}\noptimizer: {learning_rate: 3}\nenv: {name: jsonl, out_root: x}\n"
    )
    flat = run("target_model: a\nmodel_backend: compat\nedit_budget: 3\nenv: jsonl\nout_root: x\n")
    legacy = run("target_model: a\nbackend: compat\nedit_budget: 3\nenv: jsonl\nout_root: x\n")
    assert structured.flat() == flat.flat() == legacy.flat()


def test_config_is_frozen(run: Run) -> None:
    config = run("")
    with pytest.raises(Exception, match="frozen"):
        config.train.seed = 3
    with pytest.raises(AttributeError):
        config.label = "x"  # type: ignore[misc]


def test_a_folder_name_that_every_system_takes_is_made_of_the_model(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    config = resolve(flags={"optimizer_model": "org/llama3:8b?", "env": "jsonl"}, environ={})
    assert Path(config.env.out_root).parent == tmp_path / "outputs"
    assert Path(config.env.out_root).name.startswith("skillopt_jsonl_org-llama3-8b-_")


def test_no_credential_in_an_address_reaches_the_disk() -> None:
    address = "https://u:hunt@er2@host/v1?api-key=SECRET1&sig=SECRET2&api-version=3"
    config = resolve(flags={"openai_compatible_base_url": address, "backend": "openai_compatible"}, environ={})
    for shown in (json.dumps(config.public()), json.dumps(config.fingerprint_parts())):
        assert "er2" not in shown
        assert "SECRET" not in shown
        assert "https://[hidden]@host/v1" in shown
        assert "api-version=3" in shown


def test_no_credential_inside_a_mapping_of_an_environment_reaches_the_disk() -> None:
    inside = {"password": "hunter2", "headers": {"Authorization": "Bearer hunter2"}, "max_tokens": 5, "token": ""}
    config = resolve({"env": {"name": "x:Y", "service": inside, "list": [inside]}}, environ={})
    for shown in (config.public(), config.fingerprint_parts()):
        assert "hunter2" not in json.dumps(shown)
    assert config.public()["service"] == {
        "password": "[hidden]",
        "headers": {"Authorization": "[hidden]"},
        "max_tokens": 5,
        "token": "",
    }
    assert config.env_extras["service"]["password"] == "hunter2"
