from __future__ import annotations

import pytest

from skillopt.config.flags import Command, FlagSpec, flag_specs
from skillopt.config.keys import KEYS, PROVIDER_KEYS, find_key
from skillopt.config.providers import LABELS, PROVIDERS

# Flags that users of the command lines know, by type.
KNOWN = {
    "int": """
    rewrite_max_completion_tokens num_epochs train_size steps_per_epoch batch_size accumulation seed
    edit_budget min_edit_budget merge_batch_size sel_env_num test_env_num max_steps max_api_workers
    analyst_workers minibatch_size slow_update_samples skill_aware_consolidate_threshold split_seed max_turns
    workers limit judge_max_completion_tokens judge_retries claude_code_exec_max_thinking_tokens
    copilot_chat_timeout minimax_max_tokens qwen_chat_max_tokens optimizer_qwen_chat_max_tokens
    target_qwen_chat_max_tokens max_analyst_rounds
    """,
    "float": """
    qwen_chat_temperature optimizer_qwen_chat_temperature target_qwen_chat_timeout_seconds minimax_temperature
    """,
    "bool": """
    eval_test use_gate failure_only use_slow_update use_meta_skill use_skill_aware_reflection shuffle_choices
    use_theorem use_sketch codex_exec_full_auto codex_exec_network_access codex_exec_web_search
    copilot_exec_allow_all_tools codex_trace_to_optimizer minimax_enable_thinking
    target_qwen_chat_enable_thinking
    """,
    "str": """
    env backend reasoning_effort lr_scheduler lr_control_mode skill_update_mode longitudinal_pair_policy
    skill_aware_appendix_source split_mode optimizer_model target_model optimizer_backend target_backend
    rewrite_reasoning_effort azure_endpoint azure_api_key azure_openai_endpoint target_azure_openai_api_key
    qwen_chat_base_url qwen_chat_api_key qwen_chat_thinking_mode minimax_region minimax_base_url
    minimax_api_key minimax_model codex_exec_path codex_exec_sandbox codex_exec_profile
    codex_exec_reasoning_effort codex_exec_use_sdk codex_exec_approval_policy claude_code_exec_path
    claude_code_exec_profile claude_code_exec_use_sdk claude_code_exec_effort cursor_exec_path
    cursor_exec_sandbox copilot_exec_path copilot_exec_home copilot_chat_optimizer_model
    copilot_chat_target_model skill_init data_path split_ratio split_dir split_output_dir data_root
    image_detail judge_model out_root mode openai_compatible_base_url gate_metric
    """,
}
EVAL = """
    env backend optimizer_model target_model optimizer_backend target_backend reasoning_effort
    azure_openai_endpoint codex_exec_path claude_code_exec_path cursor_exec_path copilot_exec_path
    minimax_model qwen_chat_base_url out_root data_path split_mode split_ratio split_seed split_dir
    split_output_dir data_root max_turns workers max_api_workers seed test_env_num mode
    """


def _flag(name: str) -> FlagSpec:
    return next(spec for spec in flag_specs("train") if spec.name == name)


@pytest.mark.parametrize(("kind", "names"), KNOWN.items())
def test_known_flags_of_train(kind: str, names: str) -> None:
    for name in names.split():
        assert _flag(name).type == kind, name


def test_eval_has_the_subset() -> None:
    names = {spec.name for spec in flag_specs("eval")}
    assert set(EVAL.split()) <= names
    assert not {"num_epochs", "edit_budget", "skill_init", "gate_metric"} & names
    assert names < {spec.name for spec in flag_specs("train")}


def test_every_key_has_a_flag_that_leads_back_to_it() -> None:
    specs = [spec for spec in flag_specs("train") if not spec.hidden]
    assert len({spec.name for spec in specs}) == len(specs) == len(KEYS)
    for spec in specs:
        assert find_key(spec.name) is spec.key


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("use_gate", "YES", True), ("use_gate", "0", False), ("seed", "-3", -3), ("gate_mixed_weight", "1", 1),
        ("target_model", "4.1", "4.1"), ("lr_control_mode", "no-lr", "none"), ("reasoning_effort", "", ""),
        ("leading_words", "a,b", "a,b"), ("model_prices", '{"m": {"input": 1, "output": 2}}',
        {"m": {"input": 1, "output": 2}}), ("budget_max_calls", "none", "none"),
        ("qwen_chat_temperature", "off", "off"),
        ("data_dirs", "a,b", "a,b"), ("scorer_options", '{"tolerance": 0.1}', {"tolerance": 0.1}),
    ],
)  # fmt: skip
def test_reading(name: str, text: str, value: object) -> None:
    assert _flag(name).read(text) == value


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("use_gate", "maybe", "must be true, 1, yes, false, 0 or no"),
        ("seed", "1.5", "must be a whole number"),
        ("seed", "", "must be a whole number"),
        ("batch_size", "0", "of at least 1"),
        ("gate_mixed_weight", "nan", "from 0 to 1"),
        ("lr_scheduler", "cosin", "did you mean cosine?"),
        ("qwen_chat_max_tokens", "many", "must be a whole number"),
        ("model_prices", "{", "must be a mapping"),
        ("minimax_enable_thinking", "perhaps", "must be true"),
    ],
)
def test_refusing(name: str, text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        _flag(name).read(text)
    assert expected in str(caught.value)


@pytest.mark.parametrize("command", ["train", "eval"])
def test_help_lists_every_backend_and_label(command: Command) -> None:
    for flag, names in {
        "backend": LABELS,
        "optimizer_backend": [row.name for row in PROVIDERS.values() if "optimizer" in row.roles],
        "target_backend": [row.name for row in PROVIDERS.values() if "target" in row.roles],
    }.items():
        text = next(spec.help for spec in flag_specs(command) if spec.name == flag)
        ready, _, later = text.partition("Not yet:")
        assert set(names) <= set(text.replace(".", ",").replace(":", ",").replace(" ", "").split(","))
        assert "openai_chat" in ready and "mock_chat" in ready and not later
        assert ("cursor_exec" in ready) == (flag != "optimizer_backend")


def test_every_setting_of_a_backend_has_its_flag_in_both_commands() -> None:
    for key in PROVIDER_KEYS:
        for command in ("train", "eval"):
            spec = next(spec for spec in flag_specs(command) if spec.key is key)
            assert spec.name == key.name and spec.group == key.group
    in_both = {"backend", "optimizer_backend", "target_backend", "optimizer_model", "target_model", "reasoning_effort"}
    assert in_both <= {spec.name for spec in flag_specs("eval")}
    assert {"codex_trace_to_optimizer"} <= {spec.name for spec in flag_specs("eval")}
