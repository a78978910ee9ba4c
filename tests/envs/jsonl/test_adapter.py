from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillopt.envs.jsonl.adapter import JsonlEnv
from skillopt.envs.registry import accepted_keys, make_adapter
from skillopt.envs.runner import run_batch
from skillopt.errors import ConfigError, DataError
from skillopt.model.values import ModelReply
from skillopt.types import Item


def write_csv(path: Path, header: str = "id,question,answer", rows: int = 10) -> str:
    lines = [header, *(f"t{n},What is {n}?,{n}" for n in range(rows))]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def ready(tmp_path: Path, header: str = "id,question,answer", **settings: Any) -> JsonlEnv:
    env = JsonlEnv(data_path=write_csv(tmp_path / "tasks.csv", header), split_ratio="1:1:1", **settings)
    env.setup({"env": "jsonl"})
    return env


def first(env: JsonlEnv) -> Item:
    return env.get_dataloader().items("train")[0]


def test_a_csv_file_is_all_it_takes(bench: Any, tmp_path: Path) -> None:
    cfg = {"env": "jsonl", "data_path": write_csv(tmp_path / "t.csv"), "out_root": str(tmp_path / "out"), "workers": 2}
    env = make_adapter(cfg)
    env.setup(cfg)
    session = bench.session(lambda text, _: f"Let me see.\n{text.split()[-1].rstrip('?')}\n")
    batch = env.get_dataloader().build_eval_batch(0, "val", 1)  # type: ignore[union-attr]
    results = run_batch(env, batch, "Answer with a number.", bench.context(session), tmp_path)
    assert [result.hard for result in results] == [1.0] * len(results)
    assert results[0].reference_text == results[0].predicted_answer
    assert [message["role"] for message in session.seen[0].messages] == ["system", "user"]
    assert session.seen[0].messages[0]["content"] == "Answer with a number."
    assert session.seen[0].max_completion_tokens == 16384
    assert (tmp_path / "out" / "_generated_splits").is_dir()


def test_messages_hold_what_is_constant_first(tmp_path: Path) -> None:
    env = ready(tmp_path, prompt="Q {question}\n{{A}}:", system_prompt="You are brief.\n")
    item = first(env)
    asked = {"role": "user", "content": f"Q {item.data['question']}\n{{A}}:"}
    assert env.messages(item, "# Skill\nx\n") == [
        {"role": "system", "content": "You are brief.\n\n# Skill\nx"}, asked
    ]  # fmt: skip
    assert env.messages(item, "") == [{"role": "system", "content": "You are brief."}, asked]
    env.system_prompt = ""
    assert env.messages(item, " \n") == [asked]


@pytest.mark.parametrize(
    ("value", "separator", "references"),
    [
        ("Paris", "", ["Paris"]),
        ("a;b; c;", ";", ["a", "b", "c"]),
        ("a;b", "", ["a;b"]),
        (["a", 2], ";", ["a", "2"]),
        (7, "", ["7"]),
        (1.5, "", ["1.5"]),
        (True, "", ["true"]),
        ({"city": "Rome"}, "", ['{"city": "Rome"}']),
    ],
)
def test_references(value: Any, separator: str, references: list[str]) -> None:
    env = JsonlEnv(references_separator=separator)
    assert env.references(Item("1", {"answer": value})) == references


def test_several_accepted_answers_are_all_recorded(bench: Any, tmp_path: Path) -> None:
    env = JsonlEnv(references_separator=";")
    item = Item("1", {"id": "1", "question": "q", "answer": "NYC; New York"})
    (row,) = env.rollout([item], "", str(tmp_path), context=bench.context(bench.session(lambda *_: "new york")))
    assert (row["hard"], row["reference_text"]) == (1.0, "NYC | New York")
    assert row["extras"]["references"] == ["NYC", "New York"]


@pytest.mark.parametrize("value", [None, "", "  ", []])
def test_an_item_without_answer_is_named(value: Any) -> None:
    with pytest.raises(DataError, match="item 'i3': field 'answer' holds no answer"):
        JsonlEnv().references(Item("i3", {"answer": value}))


def test_usual_field_names_are_found_with_a_notice(tmp_path: Path) -> None:
    env = ready(tmp_path, header="id,input,label")
    assert (env.question_field, env.answer_field) == ("input", "label")
    notices = env.get_dataloader().notices
    assert "The data has no field 'question'; env.question_field=input is used." in notices
    assert "The data has no field 'answer'; env.answer_field=label is used." in notices
    assert env.messages(first(env), "")[0]["content"].startswith("What is")
    assert env.question(first(env)).startswith("What is")


@pytest.mark.parametrize(
    ("header", "settings", "words"),
    [
        ("id,q,answer", {}, r"env.question_field: the data has no field 'question'; set it to one of q, answer\.$"),
        (
            "key,Question,answer",
            {},
            r"no field 'question', but 'Question', and case counts; set env.question_field=Question",
        ),
        (
            "id,question,answer",
            {"answer_field": "ANSWER"},
            r"but 'answer', and case counts; set env.answer_field=answer",
        ),
        ("id,question,answer", {"prompt": "{Question}"}, r"no field 'Question', .* It has: answer, question\.$"),
        ("id,question,gold", {}, r"env.answer_field: the data has no field 'answer'; set it to one of"),
        ("id,question,answer", {"answer_field": "solution"}, r"env.answer_field: the data has no field 'solution'"),
        ("id,question,answer", {"task_type_field": "kind"}, r"env.task_type_field: the data has no field 'kind'"),
        ("id,question,answer", {"prompt": "{question} {hint}"}, r"item 't\d': no field 'hint'"),
        ("id,question,answer", {"scorer": "numeric"}, None),
    ],
)
def test_rows_are_checked_before_any_call(tmp_path: Path, header: str, settings: Any, words: str | None) -> None:
    if words is None:
        assert ready(tmp_path, header, **settings).answer_field == "answer"
        return
    with pytest.raises(DataError, match=words):
        ready(tmp_path, header, **settings)


@pytest.mark.parametrize(
    ("answers", "settings", "said"),
    [
        (["1.5", "-5", "12 %"], {}, True),
        (["1.5", "-5", "12 %"], {"scorer": "numeric"}, False),
        (["1.5", "-5", "12 %"], {"scorer_options": {"normalize": "casefold"}}, False),
        (["15", "5", "2"], {}, False),
        (["Oslo", "Bern", "-5"], {}, False),
    ],
)
def test_numbers_that_the_scorer_does_not_read_as_such_are_mentioned(
    tmp_path: Path, answers: list[str], settings: dict[str, Any], said: bool
) -> None:
    rows = [{"id": f"r{n}", "question": f"q{n}", "answer": answers[n % 3]} for n in range(30)]
    (tmp_path / "numbers.json").write_text(json.dumps(rows), encoding="utf-8")
    env = JsonlEnv(data_path=str(tmp_path / "numbers.json"), **settings)
    env.setup({})
    assert any("env.scorer=numeric" in notice for notice in env.get_dataloader().notices) is said


def test_references_that_no_answer_can_match_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"question": f"q{n}", "answer": "many"}) + "\n" for n in range(4)), "utf-8")
    env = JsonlEnv(data_path=str(path), split_ratio="1:1:1", scorer="numeric")
    with pytest.raises(DataError, match=r"item 'row-\w+', field 'answer'"):
        env.setup({})


def test_the_right_answer_cannot_be_put_into_the_prompt(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"env.prompt shows 'answer', the field of the right answer"):
        ready(tmp_path, prompt="{question} {answer}")
    with pytest.raises(ConfigError, match=r"env.prompt shows 'answer'"):
        ready(tmp_path, question_field="answer")


@pytest.mark.parametrize("settings", [{"scorer": "exakt"}, {"extract": "tags"}, {"prompt": "{"}, {"prompt": "no.md"}])
def test_wrong_settings_are_refused_at_once(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        JsonlEnv(**settings)  # type: ignore[arg-type]


def test_prompts_can_be_files(tmp_path: Path) -> None:
    path = tmp_path / "prompt.md"
    path.write_bytes("\ufeffFrage: {question}\n".encode())
    assert JsonlEnv(prompt=str(path)).prompt == "Frage: {question}"


def test_task_types_in_item_order(tmp_path: Path) -> None:
    folder = tmp_path / "splits"
    for split, kinds in {"train": "ba", "val": "b", "test": "c"}.items():
        (folder / split).mkdir(parents=True)
        rows = [{"id": f"{split}{k}", "question": f"{split}{k}", "answer": "x", "kind": k} for k in kinds]
        (folder / split / "items.json").write_text(json.dumps(rows), "utf-8")
    env = JsonlEnv(split_mode="split_dir", split_dir=str(folder), task_type_field="kind")
    env.setup({})
    assert env.get_task_types() == ["b", "a", "c"]


def test_c086_settings_that_change_results_change_the_fingerprint() -> None:
    plain = JsonlEnv().fingerprint()
    assert JsonlEnv(workers=3, exec_timeout=5, data_path="x", limit=2, seed=9).fingerprint() == plain
    changes: list[dict[str, Any]] = [
        {"prompt": "{question}!"}, {"system_prompt": "x"}, {"scorer": "f1"}, {"extract": "all"}, {"answer_field": "b"},
        {"references_separator": ";"}, {"max_completion_tokens": 5}, {"extract": "tag", "extract_arg": "x"},
    ]  # fmt: skip
    prints = [JsonlEnv(**change).fingerprint() for change in changes]
    assert len({plain, *prints}) == len(changes) + 1


def test_public_contract_methods(tmp_path: Path, bench: Any) -> None:
    env = ready(tmp_path, extract="tag")
    rows = env.build_eval_env(2, "valid_seen", 1)
    assert [row["id"] for row in rows] == [item.id for item in env.get_dataloader().items("val")[:2]]
    assert len(env.build_train_env(2, 5)) == 2
    session = bench.session(lambda *_: ModelReply("no tag"))
    out = env.rollout(rows, "s", str(tmp_path), context=bench.context(session))
    assert [row["fail_reason"].partition(":")[0] for row in out] == ["no_answer", "no_answer"]
    assert env.build_reference_text(rows[0]) == rows[0]["answer"]


def test_configuration_keys() -> None:
    assert {"prompt", "scorer", "scorer_options", "data_path", "exec_timeout", "workers"} <= accepted_keys("jsonl")


@pytest.mark.parametrize("key", ["question_field", "answer_field"])
def test_a_field_that_was_asked_for_by_name_has_to_be_there(tmp_path: Path, key: str) -> None:
    with pytest.raises(DataError, match=f"env.{key}: the data has no field 'lable'"):
        ready(tmp_path, **{key: "lable"})


def test_an_empty_prompt_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the prompt is empty"):
        ready(tmp_path, prompt=" ")
