"""Finding an item's workbooks, and refusing items that nobody could do or that give marks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.config.resolve import resolve
from skillopt.datasets.samples.plain_xlsx import write_workbook
from skillopt.engine.setup import prepare
from skillopt.envs.spreadsheetbench.adapter import SpreadsheetBenchEnv
from skillopt.envs.spreadsheetbench.cases import find_cases, task_folder, task_type
from skillopt.errors import ConfigError, DataError

PAIR = {"1_a_input.xlsx": {"S": [(1,)]}, "1_a_answer.xlsx": {"S": [(2,)]}}


def names(folder: Path) -> list[tuple[str, str, str]]:
    return [(case.number, case.source.name, case.gold.name) for case in find_cases(folder, "item")]


def test_cases_are_found_by_the_names_of_their_files(tmp_path: Path) -> None:
    for name in ("10_b_input", "10_b_answer", "2_b_init", "2_b_golden", "initial", "golden", "~$2_b_init"):
        (tmp_path / f"{name}.xlsx").touch()
    assert names(tmp_path) == [
        ("2", "2_b_init.xlsx", "2_b_golden.xlsx"),
        ("10", "10_b_input.xlsx", "10_b_answer.xlsx"),
    ]


def test_a_single_case_has_plain_names(tmp_path: Path) -> None:
    for name in ("initial", "golden"):
        (tmp_path / f"{name}.xlsx").touch()
    assert names(tmp_path) == [("1", "initial.xlsx", "golden.xlsx")]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "has no test case"),
        (["initial.xlsx"], "no golden.xlsx here"),
        (["1_a_input.xlsx"], "1_a_input.xlsx without 1_a_answer.xlsx"),
        (["1_a_golden.xlsx"], "1_a_golden.xlsx without 1_a_init.xlsx"),
    ],
)
def test_missing_workbooks_are_named(tmp_path: Path, files: list[str], words: str) -> None:
    for name in files:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=words):
        find_cases(tmp_path, "item 'x'")


@pytest.mark.parametrize("path", ["../out", "/etc", "spreadsheet/../../out", "..\\out", ".", "a\0b"])
def test_a_folder_outside_of_the_data_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="item 'x': field 'spreadsheet_path'"):
        task_folder(tmp_path / "data", {"id": "x", "spreadsheet_path": path}, "item 'x'")


def test_an_id_is_no_way_out_either(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="leads out of"):
        task_folder(tmp_path / "data", {"id": "../../x"}, "item")
    inside = tmp_path / "data" / "spreadsheet" / "x"
    inside.mkdir(parents=True)
    assert task_folder(tmp_path / "data", {"id": "x", "spreadsheet_path": str(inside)}, "item") == inside


@pytest.mark.parametrize("position", ["", "  ", "1A", "A0"])
def test_a_position_without_cells_is_refused(own_env: Callable[..., Any], position: str) -> None:
    with pytest.raises(DataError, match="item 'one', 'answer_position'"):
        own_env(PAIR, answer_position=position)


@pytest.mark.parametrize("position", ["b1:b1", "B2:A1", "A:B", "1:3", "'S'!A1", "$A$1:$B$2"])
def test_positions_in_any_writing_grade_the_cells_they_name(own_env: Callable[..., Any], position: str) -> None:
    right = {"1_a_input.xlsx": {"S": [(1, 1), (1, 1)]}, "1_a_answer.xlsx": {"S": [(2, 2), (2, 2)]}}
    env = own_env(right, answer_position=position)
    assert env._rows.notices == []  # above all not: full marks for nothing


def test_other_faults_are_found_before_any_call(own_env: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="item 'one': field 'instruction'"):
        own_env(PAIR, answer_position="A1", instruction=" ")
    with pytest.raises(DataError, match=r"item 'one': .*has no sheet 'Other'"):
        own_env(PAIR, answer_position="Other!A1")


def test_a_workbook_that_is_none_is_named(own_env: Callable[..., Any], tmp_path: Path) -> None:
    env = own_env(PAIR, answer_position="A1")
    (tmp_path / "data" / "spreadsheet" / "one" / "1_a_answer.xlsx").write_text("no zip", encoding="utf-8")
    with pytest.raises(DataError, match=r"item 'one': 1_a_answer.xlsx: cannot be read as a workbook"):
        env.setup({})


def test_an_item_that_is_done_before_it_begins_is_noticed(own_env: Callable[..., Any]) -> None:
    same = {name: {"S": [(1,)]} for name in PAIR}
    assert "full marks when the workbook is left as it is" in own_env(same, answer_position="A1")._rows.notices[-1]


def test_the_published_rules_keep_their_items(own_env: Callable[..., Any]) -> None:
    env = own_env(PAIR, {"scoring": "paper"}, answer_position="")
    assert any("graded as the published code does" in notice for notice in env._rows.notices)
    assert any("left as it is" in notice for notice in env._rows.notices)


def test_changed_workbooks_are_another_task(own_env: Callable[..., Any], tmp_path: Path) -> None:
    env = own_env(PAIR, answer_position="A1")
    before, fingerprint = env.all_items()[0].content, env.fingerprint()
    write_workbook(tmp_path / "data" / "spreadsheet" / "one" / "1_a_input.xlsx", {"S": [(3,)]})
    env.setup({})
    assert env.all_items()[0].content != before
    assert env.fingerprint() == fingerprint


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mode": "agent"}, "env.mode is 'agent'; expected single, multi or react"),
        ({"code_sandbox": "none"}, "env.code_sandbox is 'none'; expected auto or require"),
        ({"scoring": "loose"}, "env.scoring"),
        ({"use_eval_feedback": True}, "use_eval_feedback needs env.mode=multi"),
    ],
)
def test_wrong_settings_say_what_to_do(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SpreadsheetBenchEnv(**settings)


def test_missing_data_name_the_command_that_gets_them(sample_env: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"env.data_root is not set"):
        sample_env(data_root="")
    with pytest.raises(DataError, match="skillopt data materialize spreadsheetbench"):
        sample_env(data_root=str(tmp_path / "none"))


@pytest.mark.parametrize("mode", ["multi", "react"])
def test_a_coding_agent_works_in_mode_single_only(mode: str) -> None:
    assert not SpreadsheetBenchEnv(mode=mode).runs_agents() and SpreadsheetBenchEnv().runs_agents()
    asked = {"env": "spreadsheetbench", "mode": mode, "target_backend": "codex_exec", "target_model": "m"}
    with pytest.raises(ConfigError, match=r"set env.mode=single"):
        prepare(resolve(asked))


def test_types_of_tasks() -> None:
    assert [task_type(text) for text in ("Cell-Level Manipulation", "Sheet-Level Manipulation", "")] == [
        "cell_level",
        "sheet_level",
        "other",
    ]
