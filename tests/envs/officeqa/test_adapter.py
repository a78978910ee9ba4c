"""OfficeQA end to end without a network: what is refused, what is shown, how rounds go, what is kept."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.officeqa.adapter import OfficeQAEnv
from skillopt.envs.runner import RunContext, run_items
from skillopt.errors import ConfigError, DataError, RateLimitError
from skillopt.gradient.trajectories import fmt_minibatch_trajectories
from skillopt.model.session import Session
from skillopt.model.values import ModelCall, ModelReply
from skillopt.store import Store
from skillopt.testing.agents import fake_codex
from skillopt.testing.cli import cli_role
from skillopt.types import Item, Usage

Make = Callable[..., OfficeQAEnv]
RIGHT = "It is <answer>1,234 million</answer>"


# Settings and data


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"search_mode": "web"}, r"env\.search_mode is 'web'; expected offline, custom or azure"),
        ({"retrieval": "gold"}, r"env\.retrieval is 'gold'"),
        ({"scoring": "lax"}, r"env\.scoring"),
        ({"max_tool_turns": 0}, r"env\.max_tool_turns is 0"),
    ],
)
def test_wrong_settings_are_refused_at_once(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OfficeQAEnv(**keys)


def test_older_names_of_the_search_modes_are_read() -> None:
    assert OfficeQAEnv(search_mode="custom_search").search_mode == "custom"
    assert OfficeQAEnv(search_mode="azure_search").search_mode == "azure"


def test_without_documents_it_says_so_before_any_item(make_env: Make, tmp_path: Path) -> None:  # W14
    with pytest.raises(
        DataError, match=r"no folder of documents \(nowhere\).*OFFICEQA_DOCS_DIR.*hf download databricks/officeqa"
    ):
        make_env(data_dirs=["nowhere"])
    with pytest.raises(DataError, match="nothing is set"):
        make_env(data_dirs=None)


@pytest.mark.parametrize("form", ["list", "comma", "variable", "well known", "home"])
def test_documents_are_found_where_they_may_lie(
    make_env: Make, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    given: Any = None
    if form == "list":
        given = ["nowhere", "docs"]
    elif form == "comma":
        given = f"nowhere, {docs}"
    elif form == "variable":
        monkeypatch.setenv("OFFICEQA_DOCS_DIR", str(docs))
    else:
        place = "data/officeqa_docs_official" if form == "well known" else "officeqa/treasury_bulletins_parsed"
        (tmp_path / place).parent.mkdir(parents=True)
        docs.rename(tmp_path / place)
    assert "docs/root_1/a.txt" in make_env(data_dirs=given).messages(Item.from_dict(sample()), "")[1]["content"]


def sample(**changes: Any) -> dict[str, Any]:
    base = {"id": "1", "question": "q", "ground_truth": "5", "category": "", "source_files": ["a.txt"]}
    return {**base, "source_docs": ["https://docs.example/a?page=3"], **changes}


@pytest.mark.parametrize(
    ("changes", "keys", "words"),
    [
        ({"question": " "}, {}, "'u1': field 'question' is missing or empty"),
        ({"ground_truth": ""}, {}, "'u1': field 'ground_truth' is missing or empty"),
        ({"question": "", "ground_truth": ""}, {}, "list of ids; `skillopt data materialize officeqa`"),
        ({"source_files": []}, {}, "'source_files' is empty; set env.retrieval=open"),
        ({"source_files": ["a.txt, gone.txt"]}, {}, "the file 'a.txt, gone.txt' of 'source_files' is not in"),
        ({"source_files": "a.txt, gone.txt"}, {}, "the file 'gone.txt' of 'source_files' is not in"),
        ({"source_files": ["b.txt"]}, {"retrieval": "oracle"}, "page 3 of 'b.txt' has no parsed form"),
    ],
)
def test_items_that_cannot_be_done_are_refused_at_load(
    make_env: Make, officeqa: Any, changes: dict[str, Any], keys: dict[str, Any], words: str
) -> None:  # W5, W15
    with pytest.raises(DataError, match=words):
        make_env([officeqa.row(**changes)], **keys)


def test_a_csv_table_is_read_with_its_columns(make_env: Make, tmp_path: Path, play: Any, officeqa: Any) -> None:
    make_env()
    (tmp_path / "splits" / "train" / "items.csv").write_text(
        'uid,question,ground_truth,source_files,source_docs,difficulty\n'
        'UID0001,How many?,"1,234","a.txt\r\nold/c.txt","https://docs.example/a?page=3",hard\n'
        'UID0002,How much?,5 %,"a.txt, b.txt",,easy\n',
        encoding="utf-8", newline="",
    )  # fmt: skip
    env = OfficeQAEnv(split_dir=str(tmp_path / "splits"), data_dirs=["docs"], retrieval="restricted")
    env.setup({})
    one, two = env.get_dataloader().items("train")
    assert (one.id, two.id) == ("UID0001", "UID0002")
    assert one.data["source_files"] == ["a.txt", "old/c.txt"] and two.data["source_files"] == ["a.txt", "b.txt"]
    assert (env.task_type(one), env.references(one), env.references(two)) == ("hard", ["1,234"], ["5 %"])
    assert play(env, officeqa.Session("<answer>1234</answer>"), item=one).hard == 1.0


def test_ratio_mode_cuts_a_table(make_env: Make, docs: Path, tmp_path: Path, officeqa: Any) -> None:
    rows = [officeqa.row(uid=f"u{n}", question=f"q{n}") for n in range(6)]
    (tmp_path / "all.json").write_text(json.dumps(rows), encoding="utf-8")
    env = OfficeQAEnv(
        split_mode="ratio", split_ratio="1:1:1", data_path=str(tmp_path / "all.json"), data_dirs=[str(docs)],
        out_root=str(tmp_path / "run"),
    )  # fmt: skip
    env.setup({})
    assert sorted(item.id for item in env.all_items()) == [f"u{n}" for n in range(6)]


# What the target is shown


def test_the_prompt_holds_rules_skill_question_files_and_hints_and_nothing_machine_dependent(
    make_env: Make, officeqa: Any, play: Any, tmp_path: Path
) -> None:
    session = officeqa.Session(RIGHT)
    play(make_env([officeqa.row()]), session, "- Look twice.")
    call = session.seen[0]
    assert call.system.endswith("## Skill\n\n- Look twice.")
    assert "`grep`" in call.system and "at most 12 replies" in call.system
    assert call.last_user == (
        "## Question\n\nHow many tons?\n\n## Candidate files\n\n- docs/root_1/a.txt\n\n"
        "## Source hints\n\n- https://docs.example/a?page=3"
    )
    assert str(tmp_path) not in call.system + call.last_user
    assert [tool["function"]["name"] for tool in call.tools or ()] == ["glob", "read", "grep"]


@pytest.mark.parametrize(
    ("retrieval", "pages", "hints", "others"),
    [("oracle", True, True, False), ("restricted", False, True, False), ("open", False, False, True)],
)
def test_each_retrieval_shows_what_it_says(
    make_env: Make, officeqa: Any, play: Any, retrieval: str, pages: bool, hints: bool, others: bool
) -> None:  # W15
    session = officeqa.Session(officeqa.calls(("glob", {"pattern": "*"}), ("read", {"path": "b.txt"})), RIGHT)
    result = play(make_env([officeqa.row()], retrieval=retrieval), session)
    shown = session.seen[0].last_user
    assert ("Coal\\|Coke | 1,234" in shown) is pages
    assert ("docs/root_1/a.txt" in shown and "page=3" in shown) is hints
    listed, other = officeqa.told(session)
    assert ("b.txt" in listed) is others and ("Coal | 99" in other) is others
    assert result.extras["oracle_parsed_pages_included"] is pages
    assert (result.extras["oracle_parsed_pages_chars"] > 0) is pages


def test_oracle_without_a_page_in_the_hints_says_so_once(make_env: Make, officeqa: Any) -> None:
    env = make_env([officeqa.row(source_docs=["https://docs.example/a"])], retrieval="oracle")
    assert [n for n in env.get_dataloader().notices if "name no page" in n] == [
        "1 of 3 items name no page in 'source_docs', e.g. 'u1'; with env.retrieval=oracle they get the tools."
    ]


def test_a_page_that_is_not_in_the_parsed_file_is_an_error_and_never_a_zero(
    make_env: Make, officeqa: Any, play: Any
) -> None:
    env = make_env([officeqa.row(source_docs=["https://docs.example/a?page=77"])], retrieval="oracle")
    result = play(env, officeqa.Session(RIGHT))
    assert result.status == "error" and "holds nothing on page 77" in result.error


def test_without_tools_there_is_one_call_with_the_pages(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session("No idea.")
    result = play(make_env([officeqa.row()], use_local_tools=False, retrieval="oracle"), session)
    assert len(session.seen) == 1 and session.seen[0].tools is None
    assert "There are no tools" in session.seen[0].system and "1,234" in session.seen[0].last_user
    assert (result.hard, result.fail_reason.split(":")[0], result.predicted_answer) == (0.0, "no_answer", "")


# Rounds with tools


def test_the_target_looks_things_up_and_everything_said_stays(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session(
        officeqa.calls(("grep", {"pattern": "coal", "path": "a.txt"}), text="First I search."),
        officeqa.calls(("read", {"path": "a.txt", "start": 3})),
        RIGHT,
    )
    result = play(make_env([officeqa.row()]), session)
    assert (result.hard, result.soft, result.n_turns, result.status) == (1.0, 1.0, 3, "ok")
    roles = [message["role"] for message in session.seen[-1].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert officeqa.told(session) == ["2: Coal | 1,234", "Note: in MILLIONS"]
    assert [entry.get("type") or entry["role"] for entry in result.trajectory] == [
        "assistant", "tool_call", "tool_call", "assistant",
    ]  # fmt: skip
    assert result.trajectory[1] == {
        "type": "tool_call", "cmd": 'grep {"pattern": "coal", "path": "a.txt"}', "obs": "2: Coal | 1,234", "turn": 1,
    }  # fmt: skip


def test_a_wrong_call_never_ends_the_item(make_env: Make, officeqa: Any, play: Any) -> None:  # W14
    wrong = [
        ("read", {"path": "transformed"}),
        ("read", {"path": "a.txt", "start": "x"}),
        ("read", "{oops"),
        ("rm", {}),
    ]
    session = officeqa.Session(officeqa.calls(*wrong), RIGHT)
    result = play(make_env([officeqa.row()]), session)
    assert result.hard == 1.0
    assert len(officeqa.told(session)) == 4 and all(text.startswith("[error] ") for text in officeqa.told(session))


def test_more_calls_than_a_reply_may_hold_are_answered_with_words(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session(officeqa.calls(*[("glob", {"pattern": "*"})] * 20), RIGHT)
    play(make_env([officeqa.row()]), session)
    answers = officeqa.told(session)
    assert len(answers) == 20 and sum("too many calls" in text for text in answers) == 4


def test_the_last_round_has_no_tools_and_is_said_to_be_the_last(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session(officeqa.calls(("glob", {"pattern": "*"})))
    result = play(make_env([officeqa.row()], max_tool_turns=3), session)
    assert [call.tool_choice for call in session.seen] == [None, None, "none"]
    assert "Give the final answer now" in session.seen[-1].last_user
    assert (result.hard, result.n_turns, result.fail_reason) == (0.0, 3, "out_of_rounds: no answer within 3 rounds.")


def test_a_reply_with_neither_call_nor_answer_ends_the_item(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session("I believe it is 1,234 million.")
    result = play(make_env([officeqa.row()]), session)
    assert len(session.seen) == 1 and result.predicted_answer == "" and result.fail_reason.startswith("no_answer")


def test_the_time_of_an_item_ends_it_in_the_middle(make_env: Make, officeqa: Any, play: Any) -> None:  # W12
    def slow(call: ModelCall) -> ModelReply:
        threading.Event().wait(0.15)
        reply: ModelReply = officeqa.calls(("glob", {"pattern": "*"}))
        return reply

    session = officeqa.Session(slow)
    result = play(make_env([officeqa.row()], max_tool_turns=1000), session, item_timeout=0.4)
    assert result.status == "error" and "not finished within 0.4 s" in result.error
    assert len(session.seen) < 6


# Answers and scores


@pytest.mark.parametrize(
    ("reply", "strict", "paper"),
    [
        ("<answer>1,234 million</answer>", 1.0, 1.0),
        ("<answer>1.234 billion</answer>", 1.0, 0.0),  # W16
        ("<answer>1,234,000,000</answer>", 1.0, 0.0),
        ("<answer>$1,234.0 million</answer>", 1.0, 0.0),
        ("<answer>1,234 billion</answer>", 0.0, 1.0),  # W5: the published formula drops the unit
        ("<answer>7</answer> no, <answer>1234</answer>", 1.0, 0.0),  # last or first tag
        ("<answer>1234</answer> or <answer>7</answer>", 0.0, 1.0),
        ("<answer></answer>", 0.0, 0.0),
        ("1,234 million", 0.0, 0.0),
    ],
)
def test_strict_and_paper_score_as_documented(
    make_env: Make, officeqa: Any, play: Any, reply: str, strict: float, paper: float
) -> None:
    for scoring, hard in (("strict", strict), ("paper", paper)):
        result = play(make_env([officeqa.row()], scoring=scoring), officeqa.Session(reply))
        assert (result.status, result.hard) == ("ok", hard), scoring


# What is kept


def test_every_row_has_the_same_keys_and_the_prompt_is_kept_once(make_env: Make, officeqa: Any, play: Any) -> None:
    keys = None  # W27, W30
    for reply in (RIGHT, "no tag"):
        result = play(make_env([officeqa.row()], retrieval="oracle"), officeqa.Session(reply), "- SKILLMARK")
        keys = keys or set(result.extras)
        assert set(result.extras) == keys
        assert keys >= {
            "ground_truth",
            "source_files",
            "resolved_source_paths",
            "use_local_tools",
            "last_finish_reason",
        }
        kept = json.dumps(result.to_dict())
        assert kept.count("How many tons?") == 2  # as the question, and in the user prompt
        assert "SKILLMARK" not in kept
        assert result.extras["resolved_source_paths"] == ["docs/root_1/a.txt"]


def test_an_analyst_gets_a_bounded_trajectory_with_pages_in_short(
    make_env: Make, docs: Path, officeqa: Any, play: Any
) -> None:  # W26
    big = {"document": {"elements": [{"content": "w " * 11_000, "bbox": [{"page_id": 3}]}]}}
    (docs / "jsons" / "a.json").write_text(json.dumps(big), encoding="utf-8")
    (docs / "transformed" / "a.txt").write_text("coal 1\n" * 5000, encoding="utf-8")
    session = officeqa.Session(*[officeqa.calls(("read", {"path": "a.txt", "limit": 999}))] * 10, "<answer>8</answer>")
    result = play(make_env([officeqa.row()], retrieval="oracle"), session)
    assert len(session.seen[0].last_user) > 20_000 and len(result.target_user_prompt) < 3_000
    text = fmt_minibatch_trajectories([result])
    assert len(text) < 40_000
    assert '[action] read {"path": "a.txt", "limit": 999}' in text and "[obs]    coal 1" in text
    assert "<answer>8</answer>" in text and "Hidden reference" in text and "[user]" not in text


def test_ids_that_look_like_paths_do_no_harm(make_env: Make, officeqa: Any, play: Any, tmp_path: Path) -> None:  # W6
    before = {path for path in tmp_path.rglob("*") if "splits" not in path.parts}
    env = make_env([officeqa.row(uid="../../esc"), officeqa.row(uid="/etc/x:y", question="q2")])
    for item in env.get_dataloader().items("train"):
        assert play(env, officeqa.Session(RIGHT), item=item).id == item.id
    assert {path for path in tmp_path.rglob("*") if "splits" not in path.parts} == before


def test_what_is_finished_is_kept_and_only_the_rest_runs_again(make_env: Make, officeqa: Any, tmp_path: Path) -> None:
    env = make_env([officeqa.row(uid=f"u{n}", question=f"question {n}") for n in range(3)])
    broken = [True]

    def reply(call: ModelCall) -> ModelReply:
        if "question 1" in call.last_user and broken[0]:
            raise RateLimitError("busy")
        return ModelReply(RIGHT, usage=Usage(1, 1, 1))

    store = Store(tmp_path / "store.sqlite")
    items = env.get_dataloader().items("train")
    asked = []
    for _ in range(2):
        session = officeqa.Session(reply)
        ctx = RunContext(session, store=store, skill_hash="s", split="train", workers=1, item_retries=0)
        results = run_items(env, items, "", ctx)
        asked.append((len(session.seen), [result.status for result in results]))
        broken[0] = False
    store.close()
    assert asked == [(3, ["ok", "error", "ok"]), (1, ["ok"] * 3)]


def test_a_changed_document_makes_its_items_new_and_a_moved_folder_does_not(
    make_env: Make, docs: Path, officeqa: Any, tmp_path: Path
) -> None:
    env = make_env([officeqa.row(), officeqa.row(uid="u2", source_files=["b.txt"])], workers=2)
    one, two = (item.content for item in env.get_dataloader().items("train"))
    docs.rename(tmp_path / "moved")
    keys = {"data_dirs": [str(tmp_path / "moved")]}
    rows = [officeqa.row(), officeqa.row(uid="u2", source_files=["b.txt"])]
    moved = make_env(rows, **keys)
    assert [item.content for item in moved.get_dataloader().items("train")] == [one, two]
    assert moved.fingerprint() == env.fingerprint()
    (tmp_path / "moved" / "transformed" / "b.txt").write_text("Coal | 98\n", encoding="utf-8")
    changed = make_env(rows, **keys)
    first_now, second_now = (item.content for item in changed.get_dataloader().items("train"))
    assert first_now == one and second_now != two
    assert changed.fingerprint() == env.fingerprint()
    whole = make_env(rows, **keys, retrieval="open").fingerprint()
    (tmp_path / "moved" / "transformed" / "b.txt").write_text("Coal | 97\n", encoding="utf-8")
    assert make_env(rows, **keys, retrieval="open").fingerprint() != whole


def test_the_folders_are_walked_once_and_answers_are_no_documents(
    make_env: Make, tmp_path: Path, officeqa: Any, play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # W14
    make_env([officeqa.row()])
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.txt").write_text("gold", encoding="utf-8")
    env = OfficeQAEnv(
        split_dir="splits", data_dirs=["docs", "."], retrieval="open", out_root=str(tmp_path / "run"),
    )  # fmt: skip
    env.setup({})
    monkeypatch.setattr(os, "walk", lambda *_: pytest.fail("walked again"))
    session = officeqa.Session(officeqa.calls(("glob", {"pattern": "*"})), RIGHT)
    play(env, session)
    names = officeqa.told(session)[0]
    assert "docs/root_2/docs/transformed/a.txt" in names
    assert "items.json" not in names and "results.txt" not in names


# Backends


def test_a_target_without_tools_is_refused_up_front(make_env: Make) -> None:
    with pytest.raises(
        ConfigError, match=r"search_mode=offline sends tools, which the backend copilot_chat.*openai_chat"
    ):
        make_env(target_backend="copilot_chat")
    make_env(target_backend="copilot_chat", use_local_tools=False)
    make_env(target_backend="openai_compatible")
    make_env(target_backend="claude_code_exec")


def test_web_search_needs_a_backend_whose_service_searches(make_env: Make) -> None:
    with pytest.raises(ConfigError, match=r"search_mode=azure sends web_search, .*openai_compatible.*: openai_chat\."):
        make_env(search_mode="azure", target_backend="openai_compatible")
    make_env(search_mode="azure", target_backend="openai_chat")


def test_only_the_modes_with_documents_run_agents() -> None:
    assert OfficeQAEnv().runs_agents()
    assert not OfficeQAEnv(search_mode="custom").runs_agents()


def test_azure_is_one_call_with_the_service_s_own_search(make_env: Make, officeqa: Any, play: Any) -> None:
    session = officeqa.Session(RIGHT)
    result = play(make_env([officeqa.row()], search_mode="azure", data_dirs=None), session)
    assert result.hard == 1.0 and len(session.seen) == 1
    assert session.seen[0].tools == [{"type": "web_search"}]
    assert session.seen[0].last_user == "## Question\n\nHow many tons?"


# Coding agents


@pytest.mark.parametrize("retrieval", ["restricted", "open"])
def test_an_agent_gets_the_task_the_skill_and_the_documents_it_may_see(
    make_env: Make, officeqa: Any, play: Any, tmp_path: Path, retrieval: str
) -> None:
    cli = fake_codex(tmp_path, "It says <answer>1,234 million</answer>")
    env = make_env([officeqa.row()], retrieval=retrieval, target_backend="codex_exec")
    with Session({"target": cli_role("codex_exec", cli, "target")}) as session:
        result = play(env, session, item_timeout=60)
    assert (result.error, result.hard, result.n_turns) == ("", 1.0, 1)
    given = cli.calls[0].files
    assert "How many tons?" in given["task.md"] and "- Be exact." not in given["task.md"]
    assert given[".agents/skills/skillopt-target/SKILL.md"].rstrip().endswith("- Be exact.")
    documents = sorted(name for name in given if name.startswith("docs/"))
    assert ("docs/root_1/a.txt" in given["task.md"]) is (retrieval == "restricted")
    if retrieval == "restricted":
        assert documents == ["docs/root_1/a.txt"]


def test_an_agent_that_gives_no_answer_is_asked_again_in_a_new_folder(
    make_env: Make, officeqa: Any, play: Any, tmp_path: Path
) -> None:
    cli = fake_codex(tmp_path, "It is 1,234 million.")
    env = make_env([officeqa.row()], max_tool_turns=2)
    with Session({"target": cli_role("codex_exec", cli, "target")}) as session:
        result = play(env, session, item_timeout=60)
    assert (result.status, result.hard, result.n_turns) == ("ok", 0.0, 2)
    assert result.fail_reason == "out_of_rounds: no answer within 2 rounds."
    again = cli.calls[1].files["task.md"]
    assert "It is 1,234 million." in again and "How many tons?" in again
