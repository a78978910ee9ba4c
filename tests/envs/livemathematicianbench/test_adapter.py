"""LiveMathematicianBench: items in every form, prompts, answers, scores, and what a batch shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import ROOT, sample_items

from skillopt.config.resolve import resolve
from skillopt.datasets.samples import livemathematicianbench as samples
from skillopt.engine.setup import prepare
from skillopt.envs.livemathematicianbench.adapter import LiveMathematicianBenchEnv
from skillopt.envs.livemathematicianbench.choices import shuffle_choices
from skillopt.envs.runner import check_error_rate, run_batch, run_items
from skillopt.errors import ConfigError, DataError, TooManyErrorsError, TransientError
from skillopt.types import Item

NAME = "livemathematicianbench"
SAMPLES = ROOT / "data" / "samples" / NAME
MCQ = {"question": "Which x?", "choices": ["x = -2", "x = 2", "none of these"], "correct_choice": "B"}
ROW = {"id": "202511:3", **MCQ, "theorem_type": ["Algebra", "Roots"], "theorem": "2 + 2 = 4", "sketch": "Count."}


def item(**changes: Any) -> Item:
    return Item.from_dict(LiveMathematicianBenchEnv().normalize({**ROW, **changes}))


def ready(folder: Path, **settings: Any) -> LiveMathematicianBenchEnv:
    env = LiveMathematicianBenchEnv(split_mode="split_dir", split_dir=str(folder), **settings)
    env.setup({})
    return env


def write(folder: Path, **splits: list[dict[str, Any]]) -> Path:
    for name in ("train", "val", "test"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows = splits.get(name) or [{**ROW, "id": f"{name}:1"}]
        (folder / name / "items.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder


def test_the_sample_data_are_what_their_generator_writes(tmp_path: Path) -> None:
    samples.write(tmp_path)
    for split in ("train", "val", "test"):
        made = (tmp_path / split / "items.json").read_bytes()
        assert made == (SAMPLES / split / "items.json").read_bytes()
    items = [entry for split in ("train", "val", "test") for entry in sample_items(NAME, split)]
    assert 10 <= len(items) <= 20
    env = LiveMathematicianBenchEnv()
    assert all(env.normalize(entry) == entry for entry in items)  # shipped in the normal form


@pytest.mark.parametrize("name", ["default", "sample"])
def test_the_shipped_configurations_keep_their_environment(name: str) -> None:  # W1
    config = resolve(ROOT / "configs" / NAME / f"{name}.yaml")
    assert (config.env.name, config.env.exec_timeout, config.env.scoring) == (NAME, 300, "strict")
    assert (config.env.shuffle_choices, config.env.use_theorem, config.env.use_sketch) == (True, False, False)
    if name == "sample":
        env = prepare(config)
        assert isinstance(env, LiveMathematicianBenchEnv)
        assert env.get_dataloader().notices == []


def test_without_data_the_command_that_makes_them_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"skillopt data materialize {NAME}"):
        ready(tmp_path / "none")
    ids = [{"id": "202511:1", "month": "202511", "no": 1, "paper_link": "", "source_file": "f"}]
    with pytest.raises(DataError, match=f"item '202511:1': field 'question' is missing.*data materialize {NAME}"):
        ready(write(tmp_path / "ids", train=ids))


def test_a_key_of_another_environment_is_refused() -> None:  # W31
    with pytest.raises(ConfigError, match="image_detail"):
        prepare(resolve(ROOT / "configs" / NAME / "sample.yaml", cfg_options=["env.image_detail=low"]))


def test_raw_and_normal_rows_are_the_same_item() -> None:
    env = LiveMathematicianBenchEnv()
    raw = {
        "id": "row-0123456789", "month": "202511", "no": 3, "mcq": MCQ, "theorem_type": "Algebra", "theorem": "t",
    }  # fmt: skip
    row = env.normalize(raw)
    assert row["id"] == "202511:3"
    assert row["theorem_type"] == ["Algebra"] and "mcq" not in row
    assert row["correct_choice"] == {"label": "B", "text": "x = 2"}
    assert env.normalize(row) == row
    assert env.normalize({**row, "theorem_type": None})["theorem_type"] == []
    with pytest.raises(DataError, match="field 'theorem_type'"):
        env.normalize({**row, "theorem_type": {"a": 1}})


def test_a_theorem_type_in_one_text_is_no_list_of_letters() -> None:
    env = LiveMathematicianBenchEnv()
    assert env.task_type(item(theorem_type="Algebra")) == "Algebra"
    assert env.task_type(item()) == "Algebra"
    assert env.task_type(item(theorem_type=[])) == "math_mcq"


def test_a_raw_file_is_cut_and_rows_that_are_no_question_are_left_out(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"month": "202511", "no": n, "mcq": MCQ} for n in range(1, 7)]
    rows += [{"mcq": MCQ}, {"month": "202512", "no": 9, "mcq": {**MCQ, "choices": []}}]
    (tmp_path / "qa.json").write_text(json.dumps(rows), encoding="utf-8")
    env = LiveMathematicianBenchEnv(data_path=str(tmp_path / "qa.json"), split_ratio="1:1:1", out_root=str(tmp_path))
    env.setup({})
    assert {entry.id for entry in env.all_items()} == {*(f"202511:{n}" for n in range(1, 7)), "7"}
    assert any(
        "1 item(s) without question, choices or right choice are left out: 202512:9." in n for n in env._rows.notices
    )


def test_a_theorem_that_is_to_be_shown_must_be_there(tmp_path: Path) -> None:
    data = write(tmp_path, val=[{**ROW, "id": "v", "sketch": ""}])
    ready(data, use_theorem=True)
    with pytest.raises(DataError, match="item 'v': field 'sketch'"):
        ready(data, use_sketch=True)


def test_a_choice_that_gives_the_answer_away_is_mentioned(tmp_path: Path) -> None:
    rows = [{**ROW, "id": f"t{n}", "question": f"{n}?", "correct_choice": "C"} for n in range(8)]
    env = ready(write(tmp_path, train=rows))
    assert any("'none of these' stands in" in notice for notice in env._rows.notices)


def test_messages_hold_the_skill_and_end_with_the_choices() -> None:
    system, user = LiveMathematicianBenchEnv().messages(item(), "# Skill\n\n- Be {exact}.")
    assert system["content"].endswith("## Skill\n\n# Skill\n\n- Be {exact}.")
    assert "<answer>" in system["content"]
    assert user["content"] == "## Question\n\nWhich x?\n\n## Choices\n\nA. x = -2\nB. x = 2\nC. none of these"


def test_theorem_and_sketch_are_shown_when_asked_for() -> None:
    theorem, sketch = "\n\n## Theorem\n\n2 + 2 = 4", "\n\n## Proof sketch\n\nCount."
    for use_theorem, use_sketch, end in ((True, False, theorem), (False, True, sketch), (True, True, theorem + sketch)):
        env = LiveMathematicianBenchEnv(use_theorem=use_theorem, use_sketch=use_sketch)
        assert env.messages(item(), "")[1]["content"].endswith("C. none of these" + end)


# response, published score, ours; the right choice is B, "x = 2"
EXAMPLES = [
    ("<answer>B</answer>", 1, 1),
    ("<answer>b.</answer>", 1, 1),
    ("<answer>B) x = 2</answer>", 1, 1),
    ("<answer>B: because</answer>", 1, 1),
    ("<answer>X = 2</answer>", 1, 1),
    ("B", 1, 1),
    ("<answer>A</answer><answer>B</answer>", 1, 1),
    ("The answer is B", 0, 1),
    ("<answer>(B)</answer>", 0, 1),
    ("<answer>Option B</answer>", 0, 1),
    ("<answer>**B**</answer>", 0, 1),
    (r"<answer>\boxed{B}</answer>", 0, 1),
    ("A good choice is B", 0, 1),
    ("<answer>A</answer>", 0, 0),
    ("", 0, 0),
]


@pytest.mark.parametrize(("reply", "paper", "strict"), EXAMPLES)
def test_worked_examples(bench: Any, reply: str, paper: float, strict: float) -> None:  # W34
    for scoring, score in (("paper", paper), ("strict", strict)):
        env = LiveMathematicianBenchEnv(scoring=scoring)
        (result,) = run_items(env, [item()], "", bench.context(bench.session(lambda *_: reply), store=None))
        assert (result.hard, result.soft) == (score, score), scoring


def test_prose_is_read_as_its_first_letter_only_in_the_paper(bench: Any) -> None:  # W34
    for scoring, label in (("paper", "A"), ("strict", "B")):
        env = LiveMathematicianBenchEnv(scoring=scoring)
        session = bench.session(lambda *_: "A good choice is B")
        (result,) = run_items(env, [item()], "", bench.context(session))
        assert result.extras["predicted_label"] == label


def test_a_row_says_all_that_a_reader_needs(bench: Any) -> None:  # W30
    session = bench.session(lambda *_: "<answer>(A)</answer>")
    (result,) = run_items(LiveMathematicianBenchEnv(), [item()], "s", bench.context(session))
    assert (result.task_type, result.question, result.predicted_answer) == ("Algebra", "Which x?", "(A)")
    assert result.reference_text == "## Theorem\n\n2 + 2 = 4\n\n## Proof sketch\n\nCount."
    assert result.fail_reason == "wrong_answer: expected 'B. x = 2', got '(A)'."
    named = ("predicted_label", "predicted_text", "correct_label", "correct_text")
    assert [result.extras[name] for name in named] == ["A", "x = -2", "B", "x = 2"]


def test_the_guard_knows_choice_theorem_and_sketch() -> None:
    env = LiveMathematicianBenchEnv()
    assert env.references(item()) == ["x = 2", "2 + 2 = 4", "Count."]
    assert env.references(item(theorem="", sketch=None)) == ["x = 2"]
    assert env.reference(item(theorem="", sketch=None)) == ""


def test_task_types_are_the_theorem_types_in_order() -> None:
    assert ready(SAMPLES).get_task_types() == [
        "characterization",
        "existence",
        "extremal value",
        "inequality",
        "quantifiers",
    ]


def choices_of(batch: Any) -> dict[str, list[str]]:
    return {row["id"]: [choice["text"] for choice in row["choices"]] for row in batch.payload}


def test_a_batch_shows_choices_in_the_order_of_its_seed() -> None:
    env = ready(SAMPLES)
    loader = env.get_dataloader()
    plain = {entry.id: dict(entry.to_dict()) for entry in env.all_items()}
    plan = {"steps_per_epoch": 2, "accumulation": 1, "batch_size": 3, "seed": 42}
    first, second = (loader.plan_train_epoch(epoch=epoch, **plan) for epoch in (1, 2))
    for batch in (*first, *second, loader.build_train_batch(4, 7), loader.build_eval_batch(0, "val", 42)):
        assert batch.payload == [shuffle_choices(plain[row["id"]], batch.seed) for row in batch.payload]
    assert first == loader.plan_train_epoch(epoch=1, **plan)
    shown = [choices_of(batch) for batch in (*first, *second)]
    assert {**shown[0], **shown[1]} != {**shown[2], **shown[3]}  # another order in another epoch
    assert choices_of(loader.build_eval_batch(0, "val", 42)) != choices_of(loader.build_eval_batch(0, "val", 43))
    for entry in env.all_items():
        assert entry.to_dict() == plain[entry.id]  # the items themselves stay in the order of the file


def test_choices_stay_where_they_are_when_told_so() -> None:
    env = ready(SAMPLES, shuffle_choices=False)
    rows = env.get_dataloader().build_eval_batch(0, "val", 42).payload
    assert rows == sample_items(NAME, "val")
    assert env.fingerprint() != ready(SAMPLES).fingerprint()


def test_a_result_is_found_again_only_for_the_same_order(bench: Any, tmp_path: Path) -> None:
    env = ready(SAMPLES)
    session = bench.session(lambda *_: "<answer>A</answer>")
    context = bench.context(session)
    for seed, calls in ((42, 4), (42, 4), (43, 8)):
        results = run_batch(env, env.get_dataloader().build_eval_batch(0, "val", seed), "s", context, tmp_path)
        assert len(session.calls) == calls
        assert all((result.extras["correct_label"] == "A") == bool(result.hard) for result in results)


def test_a_second_turn_keeps_question_and_choices(bench: Any) -> None:  # W25
    replies = iter(["Let me see.", "<answer>B</answer>", "never asked"])
    session = bench.session(lambda *_: next(replies))
    (result,) = run_items(LiveMathematicianBenchEnv(max_turns=3), [item()], "s", bench.context(session))
    assert (result.hard, result.n_turns) == (1, 2)
    again = session.seen[1].messages
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert "Which x?" in again[1]["content"] and "B. x = 2" in again[1]["content"]


@pytest.mark.parametrize("item_id", ["../../esc", "/etc/passwd", "202511:1", "..", "con"])
def test_ids_never_become_paths(bench: Any, tmp_path: Path, item_id: str) -> None:  # W6
    env = ready(write(tmp_path / "data", val=[{**ROW, "id": item_id}]), shuffle_choices=False)
    batch = env.get_dataloader().build_eval_batch(0, "val", 1)
    out = tmp_path / "out" / "deep"
    before = set(tmp_path.rglob("*"))
    (result,) = run_batch(env, batch, "", bench.context(bench.session(lambda *_: "<answer>B</answer>")), out)
    assert (result.id, result.hard) == (item_id, 1)
    assert set(tmp_path.rglob("*")) - before <= {out.parent, out}


def test_a_failure_is_an_error_and_the_next_run_makes_up_for_it(bench: Any) -> None:  # W7
    items = [item(id=f"m:{n}", question=f"{n}?") for n in range(3)]

    def broken(text: str, _: Any) -> str:
        if "1?" in text:
            raise TransientError("503 overloaded")
        return "<answer>B</answer>"

    env = LiveMathematicianBenchEnv()
    results = run_items(env, items, "s", bench.context(bench.session(broken), item_retries=0))
    assert [result.status for result in results] == ["ok", "error", "ok"]
    with pytest.raises(TooManyErrorsError, match="1 of 3 items"):
        check_error_rate(results, 0.05)
    session = bench.session(lambda *_: "<answer>B</answer>")
    assert [result.hard for result in run_items(env, items, "s", bench.context(session))] == [1.0] * 3
    assert len(session.calls) == 1


def test_an_item_that_takes_too_long_is_cancelled(bench: Any) -> None:
    session = bench.session(lambda _, cancel: cancel.wait(30))
    context = bench.context(session, item_timeout=0.05, item_retries=0)
    (result,) = run_items(LiveMathematicianBenchEnv(), [item()], "s", context)
    assert (result.status, result.error) == ("error", "DeadlineError: not finished within 0.05 s")


def test_analysts_are_told_about_the_benchmark() -> None:
    env = LiveMathematicianBenchEnv()
    error, success = env.get_error_minibatch_prompt() or "", env.get_success_minibatch_prompt() or ""
    for kind in ("quantifier_miss", "strength_mismatch", "condition_miss", "option_confusion", "other"):
        assert f"`{kind}`" in error
    assert "failure_summary" in error and "success_patterns" in success


@given(
    st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=8),
    st.integers(0, 99),
    st.text(),
    st.sampled_from(["strict", "paper"]),
    st.data(),
)
def test_the_right_label_scores_1_in_any_order(
    texts: list[str], seed: int, other: str, scoring: str, data: st.DataObject
) -> None:
    env = LiveMathematicianBenchEnv(scoring=scoring)
    right = data.draw(st.integers(0, len(texts) - 1))
    row = env.normalize({"id": "m:1", "question": "q", "choices": texts, "correct_choice": {"label": chr(65 + right)}})
    shown = Item.from_dict(shuffle_choices(row, seed))
    reply = f"<answer>{shown.data['correct_choice']['label']}</answer>"
    assert env.score(shown, env.answer(reply)).hard == 1
    assert env.score(shown, env.answer(other)).hard in (0, 1)
