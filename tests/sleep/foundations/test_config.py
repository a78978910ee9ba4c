"""Settings: one table, strict files, precedence with provenance, one root, derived paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillopt_sleep.config import DEFAULTS, SleepConfig, canonical_backend, load_config
from skillopt_sleep.config_keys import KEYS
from skillopt_sleep.errors import UsageProblem


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A HOME of our own, without any variable of a night."""
    for name in ("SKILLOPT_SLEEP_HOME", "SKILLOPT_SLEEP_WORKERS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "home"
    (folder / ".skillopt-sleep").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def write(home: Path, text: str, name: str = "config.json") -> Path:
    path = home / ".skillopt-sleep" / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_row_of_the_table_has_a_default_that_passes_its_own_check_and_a_meaning() -> None:
    assert SleepConfig(DEFAULTS).to_dict()["seed"] == 42
    assert all(key.meaning.endswith(".") and key.expected for key in KEYS)
    assert len({key.name for key in KEYS}) == len(KEYS)


def test_published_defaults_hold_and_the_deliberate_differences_are_these() -> None:
    config = load_config()
    published = {
        "transcript_source": "claude",
        "projects": "invoked",
        "lookback_hours": 72,
        "max_tasks_per_night": 40,
        "max_tokens_per_night": 400_000,
        "val_fraction": 0.34,
        "test_fraction": 0.0,
        "gate_mode": "on",
        "edit_budget": 4,
        "gate_metric": "mixed",
        "managed_skill_name": "skillopt-sleep-learned",
        "evidence_max_chars": 4000,
        "auto_adopt": False,
        "multi_skill_fanout": None,
    }
    assert {name: config.get(name) for name in published} == published
    assert (config.backend, config.gate_no_regression, config.gate_min_val) == ("", True, 5)


def test_files_environment_and_overrides_win_in_this_order_and_each_value_says_where_it_came_from(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home, json.dumps({"seed": 1, "edit_budget": 2, "workers": 2}))
    monkeypatch.setenv("SKILLOPT_SLEEP_WORKERS", "3")
    config = load_config(edit_budget=9, model=None)
    assert (config.seed, config.edit_budget, config.workers, config.model) == (1, 9, 3, "")
    assert config.provenance["seed"] == str(path)
    assert config.provenance["edit_budget"] == "override"
    assert config.provenance["workers"] == "SKILLOPT_SLEEP_WORKERS"
    assert config.provenance["model"] == "default"
    assert config.get("_user_config_keys") == ["edit_budget", "seed", "workers"]
    assert config.chosen() == {"edit_budget": 9, "seed": 1, "workers": 3}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"gate_mode": "off", "seed": 7}'),
        ("config.yaml", "gate_mode: off\nseed: 7\n"),
        ("config.yml", "# comment\ngate_mode: 'off'\nseed: 7\n"),
    ],
)
def test_three_forms_of_file_say_the_same(home: Path, name: str, text: str) -> None:
    write(home, text, name)
    config = load_config()
    assert (config.gate_mode, config.seed, config.gate_on) == ("off", 7, False)


def test_the_first_file_counts_and_the_others_are_named(home: Path) -> None:
    write(home, '{"seed": 1}')
    write(home, "seed: 2\n", "config.yml")
    config = load_config()
    assert config.seed == 1
    assert "config.yml: not read" in config.notices[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("config.json", "{", ["config.json:1", "JSON"]),
        ("config.json", "[]", ["mapping", "list"]),
        ("config.json", '{"seed": 1, "seed": 2}', ["'seed'", "twice"]),
        ("config.json", "[" * 100_000, ["config.json"]),
        ("config.yaml", "a:\n\t- b", ["config.yaml:2", "YAML"]),
        ("config.yaml", "seed: 1\nseed: 2\n", ["config.yaml:2", "'seed'", "twice"]),
        ("config.yaml", "when: 2020-99-99\n", ["config.yaml"]),
        ("config.json", '{"edit_budgte": 3}', ["config.json", "'edit_budgte'", "did you mean 'edit_budget'"]),
        ("config.json", '{"edit_budget": "3"}', ["config.json", "edit_budget is '3'", "whole number"]),
        ("config.json", '{"edit_budget": true}', ["edit_budget is True"]),
        ("config.json", '{"edit_budget": 0}', ["at least 1"]),
        ("config.json", '{"progress": 1}', ["progress is 1", "true or false"]),
        ("config.json", '{"gate_metric": "mixd"}', ["'hard', 'soft', 'mixed'", "did you mean 'mixed'"]),
        ("config.json", '{"gate_mode": "of"}', ["gate_mode is 'of'"]),
        ("config.json", '{"backend": "cluade"}', ["did you mean 'claude'"]),
        ("config.json", '{"gate_mixed_weight": 1.5}', ["from 0 to 1"]),
        ("config.json", '{"gate_mixed_weight": NaN}', ["from 0 to 1"]),
        ("config.json", '{"skill_roots": "x"}', ["list of paths"]),
        ("config.json", '{"projects": "some"}', ["'invoked', 'all'"]),
        ("config.json", '{"claude_home": ""}', ["claude_home", "folder"]),
        ("config.json", '{"seed": null}', ["seed is None"]),
        ("config.json", '{"val_fraction": 0.6, "test_fraction": 0.4}', ["nothing to train on"]),
        ("config.json", '{"managed_skill_name": "../x"}', ["managed_skill_name"]),
        ("config.json", '{"auto_adopt": true, "gate_mode": "off"}', ["allow_ungated_auto_adopt"]),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_naming_it(home: Path, name: str, text: str, words: list[str]) -> None:
    write(home, text, name)
    with pytest.raises(UsageProblem) as caught:
        load_config()
    assert caught.value.exit_code == 2
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_bytes_that_are_no_utf8_are_refused_and_a_byte_order_mark_is_not(home: Path) -> None:
    path = write(home, "")
    path.write_bytes(b"\xef\xbb\xbf" + '{"preferences": "k\u00fcrzer"}'.encode())
    assert load_config().preferences == "k\u00fcrzer"
    path.write_bytes(b'{"preferences": "\xff"}')
    with pytest.raises(UsageProblem, match="UTF-8"):
        load_config()


def test_an_empty_file_sets_nothing(home: Path) -> None:
    write(home, " \n", "config.yaml")
    assert load_config().chosen() == {}


@pytest.mark.parametrize("value", ["zero", "0", "-1", "65", "1.5", "9" * 30])
def test_a_bad_worker_count_is_refused_once_and_names_the_variable(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLOPT_SLEEP_WORKERS", value)
    with pytest.raises(UsageProblem, match="SKILLOPT_SLEEP_WORKERS: workers"):
        load_config()


def test_nullable_caps_tell_zero_from_none(home: Path) -> None:
    write(home, '{"max_tokens_per_night": null, "lookback_hours": null, "max_calls_per_night": 0}')
    config = load_config()
    assert (config.max_tokens_per_night, config.lookback_hours, config.max_calls_per_night) == (None, None, 0)


def test_one_variable_is_the_root_of_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "own"
    root.mkdir()
    (root / "config.json").write_text('{"seed": 5}')
    monkeypatch.setenv("SKILLOPT_SLEEP_HOME", str(root))
    config = load_config(claude_home=str(tmp_path / "other" / ".claude"))
    assert config.seed == 5
    assert config.state_path == root / "state.json"
    assert config.prompts_path == root / "prompts.json"


def test_a_claude_home_of_ones_own_isolates_configuration_prompts_and_state_together(
    home: Path, tmp_path: Path
) -> None:
    write(home, '{"seed": 5}')
    config = load_config(claude_home=str(tmp_path / "other" / ".claude"))
    root = tmp_path / "other" / ".skillopt-sleep"
    assert (config.seed, config.home, config.state_dir) == (42, root, root)
    assert config.prompts_path == root / "prompts.json"


def test_a_claude_home_from_the_file_moves_the_state_only(home: Path, tmp_path: Path) -> None:
    write(home, json.dumps({"claude_home": str(tmp_path / "other" / ".claude")}))
    config = load_config()
    assert config.home == home / ".skillopt-sleep"
    assert config.state_dir == tmp_path / "other" / ".skillopt-sleep"


def test_tilde_is_expanded_wherever_a_path_comes_from(home: Path) -> None:
    write(home, '{"claude_home": "~/.claude", "codex_path": "~/bin/codex", "skill_roots": ["~/skills", "rel"]}')
    config = load_config(state_dir="~/state")
    assert config.state_dir == home / "state"
    assert config.codex_path == str(home / "bin" / "codex")
    assert config.skill_roots == [str(home / "skills"), "rel"]
    assert config.transcripts_dir == home / ".claude" / "projects"


def test_derived_paths_follow_project_and_target(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "w"
    config = load_config(invoked_project=str(project))
    assert config.managed_skill_path == home / ".claude" / "skills" / "skillopt-sleep-learned" / "SKILL.md"
    assert config.memory_path == project / "CLAUDE.md"
    assert config.staging_root == project / ".skillopt-sleep" / "staging"
    assert config.replace(target_skill_path="a/SKILL.md").managed_skill_path == project / "a" / "SKILL.md"
    assert config.replace(target_skill_path="/x/SKILL.md").managed_skill_path == Path("/x/SKILL.md")
    assert config.replace(edit_budget=None).edit_budget == 4


def test_the_project_is_the_current_folder_when_none_is_named(tmp_path: Path) -> None:
    assert load_config().invoked_project == str(tmp_path)
    assert load_config(projects="all").project == tmp_path
    assert "invoked_project" not in load_config().get("_user_config_keys")


@pytest.mark.parametrize(
    ("chosen", "fractions"),
    [
        ({}, (0.34, 0.0)),
        ({"holdout_fraction": 0.5}, (0.5, 0.0)),
        ({"holdout_fraction": 0.5, "val_fraction": 0.34}, (0.34, 0.0)),
        ({"holdout_fraction": 0.5, "val_fraction": 0.0, "test_fraction": 0.2}, (0.0, 0.2)),
    ],
)
def test_an_explicit_val_fraction_beats_its_older_name(chosen: dict[str, Any], fractions: tuple[float, float]) -> None:
    assert load_config(**chosen).fractions == fractions


def test_a_configuration_can_be_made_again_from_its_own_values() -> None:
    config = load_config(seed=3, backend="anthropic")
    again = load_config(**config.to_dict())
    assert again.to_dict()["seed"] == 3
    assert load_config(**config.chosen()).to_dict() == config.to_dict()


def test_backends_go_by_their_own_names_and_have_to_be_chosen() -> None:
    assert canonical_backend(" Claude_Code ") == "claude"
    assert load_config(backend="aoai").backends == ("azure_openai",)
    with pytest.raises(UsageProblem, match="--backend"):
        _ = load_config().backends
    with pytest.raises(UsageProblem, match="--backend"):
        _ = load_config(target_backend="claude").backends
    assert load_config(target_backend="claude", optimizer_backend="codex").backends == ("codex", "claude")


def test_whether_a_model_is_called_depends_on_every_role() -> None:
    assert not load_config(backend="mock").calls_a_model
    assert load_config(backend="mock", optimizer_backend="claude").calls_a_model
    assert load_config(backend="mock", judge_backend="claude").calls_a_model


def test_unknown_attributes_name_the_nearest_setting_and_get_has_a_default() -> None:
    config = SleepConfig({"seed": 1})
    with pytest.raises(AttributeError, match="did you mean 'edit_budget'"):
        _ = config.edit_budgt
    assert config.get("nothing", 3) == 3
    assert config["seed"] == 1
    with pytest.raises(KeyError):
        _ = config["nothing"]
    assert config.get("_user_config_keys") == ["seed"]


def test_values_handed_out_are_copies() -> None:
    config = load_config()
    config.to_dict()["skill_roots"].append("x")
    assert load_config().skill_roots == config.skill_roots == []


def test_session_limit_and_fanout_follow_their_keys() -> None:
    assert load_config().session_limit == 120
    assert load_config(max_sessions_per_night=7).session_limit == 7
    assert not load_config().fanout
    assert load_config(multi_skill_report=True).fanout
    assert not load_config(multi_skill_report=True, multi_skill_fanout=False).fanout


def test_settings_do_not_change_and_survive_being_copied() -> None:
    import copy
    import pickle

    config = load_config(seed=3)
    for name in ("seed", "state_dir", "anything"):
        with pytest.raises(AttributeError):
            setattr(config, name, 4)
    assert copy.deepcopy(config).to_dict() == pickle.loads(pickle.dumps(config)).to_dict() == config.to_dict()
