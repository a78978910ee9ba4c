"""SearchQA: items, prompts, answers, scores, and what happens when something goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import ROOT, sample_items

from skillopt.config.resolve import resolve
from skillopt.datasets.samples import searchqa as samples
from skillopt.engine.plan import make_plan
from skillopt.engine.plan_counts import Range
from skillopt.engine.setup import prepare
from skillopt.envs.registry import make_adapter
from skillopt.envs.runner import check_error_rate, run_batch, run_items
from skillopt.envs.searchqa.adapter import SearchQAEnv
from skillopt.errors import ConfigError, DataError, TooManyErrorsError, TransientError
from skillopt.model.values import ModelReply
from skillopt.types import Item

ITEM = Item("q1", {"id": "q1", "question": "Who?", "context": "[DOC] It was Ada.", "answers": ["Ada Byron", "Ada"]})


def write(folder: Path, **splits: list[dict[str, Any]]) -> str:
    for name in ("train", "val", "test"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows = splits.get(name) or [{"id": f"{name}-1", "question": f"{name}?", "answers": ["x"]}]
        (folder / name / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    return str(folder)


def ready(folder: Path, **settings: Any) -> SearchQAEnv:
    env = SearchQAEnv(split_mode="split_dir", split_dir=str(folder), **settings)
    env.setup({})
    return env


def test_the_sample_data_are_what_their_generator_writes(tmp_path: Path) -> None:
    samples.write(tmp_path)
    for split in ("train", "val", "test"):
        made = (tmp_path / split / "items.json").read_bytes()
        assert made == (ROOT / "data" / "samples" / "searchqa" / split / "items.json").read_bytes()
    items = [item for split in ("train", "val", "test") for item in sample_items("searchqa", split)]
    assert 10 <= len(items) <= 20
    assert all(item["answers"][0] in item["context"] for item in items)


@pytest.mark.parametrize("name", ["default", "sample"])
def test_the_shipped_configurations_keep_their_environment(name: str) -> None:  # W1
    config = resolve(ROOT / "configs" / "searchqa" / f"{name}.yaml")
    assert (config.env.name, config.env.split_mode, config.env.scoring) == ("searchqa", "split_dir", "strict")
    assert config.train.train_size == (400 if name == "default" else 0)
    assert config.env.workers == (24 if name == "default" else 4)
    if name == "sample":
        env = prepare(config)
        assert isinstance(env, SearchQAEnv)
        assert env.get_dataloader().notices == []


def test_without_data_the_command_that_makes_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="skillopt data materialize searchqa"):
        ready(tmp_path / "none")


def test_a_key_of_another_environment_is_refused() -> None:  # W31
    with pytest.raises(ConfigError, match="max_tool_turns"):
        prepare(resolve(ROOT / "configs" / "searchqa" / "sample.yaml", cfg_options=["env.max_tool_turns=3"]))
    with pytest.raises(DataError, match="unknown name 'validation'"):
        ready(ROOT / "data" / "samples" / "searchqa").build_eval_env(0, "validation", 1)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"question": " ", "answers": ["x"]}, "item 'bad': field 'question' is missing or empty"),
        ({"question": ["a"], "answers": ["x"]}, "item 'bad': field 'question' is a list"),
        ({"question": "a", "answers": []}, "item 'bad': field 'answers' holds no answer"),
        ({"question": "a", "answers": [" "]}, "item 'bad': field 'answers' holds no answer"),
        ({"question": "a"}, "item 'bad': field 'answers' holds no answer"),
        ({"question": "a", "answers": ["x", 3]}, "item 'bad': field 'answers' is"),
        ({"question": "a", "answers": ["x"], "context": ["d"]}, "item 'bad': field 'context' is a list"),
        ({}, "id without a task; `skillopt data materialize searchqa`"),
    ],
)
def test_items_that_cannot_be_done_are_refused(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        ready(Path(write(tmp_path, train=[{"id": "bad", **row}])))


def test_rows_of_the_public_data_get_their_key_as_id(tmp_path: Path) -> None:
    rows = [{"key": f"k{n}", "question": f"q{n}", "context": "", "answers": ["a"]} for n in range(4)]
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    env = SearchQAEnv(data_path=str(tmp_path / "all.jsonl"), split_ratio="1:1:1")
    env.setup({})
    assert {item.id for item in env.all_items()} == {"k0", "k1", "k2", "k3"}


def test_answers_in_one_text_are_one_answer_or_a_list() -> None:
    env = SearchQAEnv()
    for text, answers in (("Paris", ["Paris"]), ('["a", "b"]', ["a", "b"]), ("[1", ["[1"])):
        assert env.normalize({"id": "1", "answers": text})["answers"] == answers
    row = {"id": "1", "answers": ["Paris"]}
    assert env.normalize(row) == row


def test_messages_hold_the_skill_and_end_with_the_question() -> None:
    env = SearchQAEnv()
    system, user = env.messages(ITEM, "# Skill\n\n- Be {brief}.")
    assert system["role"] == "system"
    assert system["content"].endswith("## Skill\n\n# Skill\n\n- Be {brief}.")
    assert "<answer>" in system["content"]
    assert user["content"] == "## Context\n\n[DOC] It was Ada.\n\n## Question\n\nWho?"
    assert "## Skill" not in env.messages(ITEM, " \n")[0]["content"]
    assert env.messages(Item("2", {"question": "Who?", "answers": ["x"]}), "")[1]["content"] == "## Question\n\nWho?"


def test_what_is_constant_comes_first() -> None:
    env = SearchQAEnv()
    other = Item("q2", {**ITEM.data, "question": "When?"})
    assert env.messages(ITEM, "s")[0] == env.messages(other, "s")[0]


# response, answers, extracted, em, f1, sub_em
EXAMPLES = [
    ("I think <answer>The Beatles</answer>", ["beatles"], "The Beatles", 1, 1, 1),
    ("<answer>Abraham Lincoln</answer>", ["Lincoln"], "Abraham Lincoln", 0, 2 / 3, 1),
    ("<answer>big big cat</answer>", ["big cat"], "big big cat", 0, 0.8, 1),
    ("<answer>a</answer>", ["A"], "a", 1, 1, 1),
    ("<answer>New-York</answer>", ["New York"], "New-York", 0, 0, 0),
    ("<answer>U.S.A.</answer>", ["usa"], "U.S.A.", 1, 1, 1),
    ("<answer>“Paris”</answer>", ["Paris"], "“Paris”", 0, 0, 1),
    ("<answer>café</answer>", ["cafe"], "café", 0, 0, 0),
    ("<answer>unterminated", ["unterminated"], "<answer>unterminated", 0, 0, 1),
    ("<answer>one</answer><answer>two</answer>", ["two"], "two", 1, 1, 1),
    ("Let me see.\n\nParis\n", ["Paris"], "Paris", 1, 1, 1),
]


@pytest.mark.parametrize("scoring", ["strict", "paper"])
@pytest.mark.parametrize(("reply", "answers", "extracted", "em", "f1", "sub_em"), EXAMPLES)
def test_worked_examples(
    bench: Any, reply: str, answers: list[str], extracted: str, em: float, f1: float, sub_em: float, scoring: str
) -> None:
    env = SearchQAEnv(scoring=scoring)
    item = Item("1", {"id": "1", "question": "q", "answers": answers})
    (result,) = run_items(env, [item], "", bench.context(bench.session(lambda *_: reply)))
    assert result.predicted_answer == extracted
    assert (result.hard, result.soft) == (em, pytest.approx(f1))
    assert {name: result.extras[name] for name in ("em", "f1", "sub_em")} == {
        "em": em, "f1": pytest.approx(f1), "sub_em": sub_em,
    }  # fmt: skip


@pytest.mark.parametrize(("scoring", "em", "sub_em"), [("strict", 1, 1), ("paper", 0, 1)])
def test_one_text_instead_of_a_list(bench: Any, scoring: str, em: float, sub_em: float) -> None:
    env = SearchQAEnv(scoring=scoring)
    item = Item.from_dict(env.normalize({"id": "1", "question": "q", "answers": "Paris"}))
    env.check(item)
    session = bench.session(lambda *_: "<answer>Paris</answer>")
    (result,) = run_items(env, [item], "", bench.context(session))
    assert (result.hard, result.extras["em"], result.extras["sub_em"]) == (em, em, sub_em)
    assert result.extras["gold_answers"] == ["Paris"]


@pytest.mark.parametrize(("scoring", "sub_em"), [("strict", 0), ("paper", 1)])
def test_an_empty_answer_holds_nothing(bench: Any, scoring: str, sub_em: float) -> None:
    env = SearchQAEnv(scoring=scoring)
    item = Item("1", {"id": "1", "question": "q", "answers": ["x", ""]})
    session = bench.session(lambda *_: "<answer></answer>")
    (result,) = run_items(env, [item], "", bench.context(session))
    assert result.extras["sub_em"] == sub_em
    assert result.hard == (
        1 if scoring == "paper" else 0
    )  # the published formula takes the blank answer for a right one


def test_a_row_says_all_that_a_reader_needs(bench: Any) -> None:  # W30
    session = bench.session(lambda *_: "<answer>Eve</answer>")
    (result,) = run_items(SearchQAEnv(), [ITEM], "s", bench.context(session))
    assert (result.task_type, result.question, result.reference_text) == ("qa", "Who?", "Ada Byron | Ada")
    assert result.fail_reason.startswith("wrong_answer: expected")
    assert result.extras["gold_answers"] == ["Ada Byron", "Ada"]
    assert (result.n_turns, [entry["role"] for entry in result.trajectory]) == (1, ["user", "assistant"])
    assert SearchQAEnv().references(ITEM) == ["Ada Byron", "Ada"]


def test_the_breakdown_by_task_type_is_filled() -> None:
    env = ready(ROOT / "data" / "samples" / "searchqa")
    assert env.get_task_types() == ["qa"]
    assert env.task_type(Item("1", {"task_type": "people"})) == "people"


def test_a_second_turn_keeps_question_and_context(bench: Any) -> None:  # W25
    replies = iter(["Perhaps Ada.", "<answer>Ada</answer>", "never asked"])
    session = bench.session(lambda *_: next(replies))
    (result,) = run_items(SearchQAEnv(max_turns=3), [ITEM], "s", bench.context(session))
    assert result.hard == 1 and result.n_turns == 2
    again = session.seen[1].messages
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert again[1]["content"].endswith("## Question\n\nWho?") and "It was Ada" in again[1]["content"]
    assert again[2]["content"] == "Perhaps Ada."


def test_a_first_reply_with_an_answer_is_enough(bench: Any) -> None:
    session = bench.session(lambda *_: "<answer>Eve</answer>")
    (result,) = run_items(SearchQAEnv(max_turns=4), [ITEM], "s", bench.context(session))
    assert (len(session.calls), result.n_turns) == (1, 1)


@pytest.mark.parametrize("item_id", ["../../esc", "/etc/passwd", "a:b", "..", "nul", "x" * 500])
def test_ids_never_become_paths(bench: Any, tmp_path: Path, item_id: str) -> None:  # W6
    env = ready(Path(write(tmp_path / "data", val=[{**ITEM.data, "id": item_id}])))
    batch = env.get_dataloader().build_eval_batch(0, "val", 1)
    out = tmp_path / "out" / "deep"
    before = {path for path in tmp_path.rglob("*")}
    (result,) = run_batch(env, batch, "", bench.context(bench.session(lambda *_: "<answer>Ada</answer>")), out)
    assert (result.id, result.hard) == (item_id, 1)
    assert {path for path in tmp_path.rglob("*")} - before <= {out.parent, out}


def test_a_failure_is_an_error_and_the_next_run_makes_up_for_it(bench: Any) -> None:  # W7, W13
    items = [Item(f"q{n}", {**ITEM.data, "id": f"q{n}", "question": f"{n}?"}) for n in range(4)]

    def limited(text: str, _: Any) -> str:
        raise TransientError("429 too many requests")

    env = SearchQAEnv()
    failed = run_items(env, items, "s", bench.context(bench.session(limited), item_retries=0))
    assert {(result.status, result.hard) for result in failed} == {("error", 0.0)}
    with pytest.raises(TooManyErrorsError, match=r"4 of 4 items .*429 too many requests"):
        check_error_rate(failed, 0.05)

    def half(text: str, _: Any) -> str:
        return "<answer>Ada</answer>" if text.endswith(("0?", "1?")) else limited(text, _)

    run_items(env, items, "s", bench.context(bench.session(half), item_retries=0))
    session = bench.session(lambda *_: "<answer>Ada</answer>")
    results = run_items(env, items, "s", bench.context(session))
    assert [result.hard for result in results] == [1.0] * 4
    assert sorted(text[-2:] for text in session.calls) == ["2?", "3?"]  # only what had failed


def test_an_item_that_takes_too_long_is_cancelled(bench: Any) -> None:
    session = bench.session(lambda _, cancel: cancel.wait(30))
    (result,) = run_items(SearchQAEnv(), [ITEM], "s", bench.context(session, item_timeout=0.05, item_retries=0))
    assert (result.status, result.error) == ("error", "DeadlineError: not finished within 0.05 s")


def test_a_reply_that_was_cut_off_is_said_to_be(bench: Any) -> None:
    session = bench.session(lambda *_: ModelReply("I think that", finish_reason="length"))
    (result,) = run_items(SearchQAEnv(), [ITEM], "s", bench.context(session))
    assert result.fail_reason.startswith("cut_off:")


def test_settings_that_change_results_change_the_fingerprint() -> None:
    base = SearchQAEnv().fingerprint()
    assert SearchQAEnv(scoring="paper").fingerprint() != base
    assert SearchQAEnv(max_turns=2).fingerprint() != base
    assert SearchQAEnv(workers=2, limit=3, exec_timeout=5).fingerprint() == base


def test_a_wrong_way_to_score_is_refused() -> None:
    with pytest.raises(ConfigError, match="scoring"):
        make_adapter({"env": "searchqa", "scoring": "lenient"})


def test_a_plan_knows_what_one_turn_takes(tmp_path: Path) -> None:
    for turns, calls in ((1, Range(5 + 8 + 5, 3 * 5 + 8 + 3 * 5)), (2, None)):
        config = resolve(
            ROOT / "configs" / "searchqa" / "sample.yaml",
            cfg_options=[f"env.max_turns={turns}", "optimizer.use_slow_update=false"],
            flags={"out_root": str(tmp_path)},
        )
        target = make_plan(config).roles["target"]
        assert target.calls == calls
        assert (target.prompt_tokens is None) == (calls is None)


def test_analysts_are_told_about_the_benchmark() -> None:
    env = SearchQAEnv()
    error, success = env.get_error_minibatch_prompt() or "", env.get_success_minibatch_prompt() or ""
    for kind in ("rule_missing", "rule_wrong", "rule_ignored", "answer_format", "other"):
        assert f"`{kind}`" in error
    assert "failure_summary" in error and "success_patterns" in success


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4),
    st.text(),
    st.sampled_from(["strict", "paper"]),
)
def test_an_accepted_answer_scores_1_and_any_reply_has_a_score(answers: list[str], reply: str, scoring: str) -> None:
    env = SearchQAEnv(scoring=scoring)
    item = Item("1", {"question": "q", "answers": answers})
    assert (env.score(item, answers[-1]).hard, env.score(item, answers[-1]).soft) == (1, 1)
    score = env.score(item, env.answer(reply))
    assert score.hard in (0, 1) and score.hard <= score.soft <= 1
