"""DocVQA: what is asked, how it is scored, what is kept, and what is refused before the first call."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_runs import ROOT

from skillopt.config.resolve import resolve
from skillopt.datasets.checks import check_items
from skillopt.envs.docvqa import images
from skillopt.envs.docvqa.adapter import DocVQAEnv
from skillopt.envs.runner import run_items
from skillopt.errors import ConfigError, DataError, MissingExtraError, TransientError
from skillopt.types import Item
from skillopt.utils.cancel import CancelToken

Make = Callable[..., DocVQAEnv]


def first(env: DocVQAEnv, split: str = "train") -> Item:
    return env.get_dataloader().items(split)[0]


def golds(*answers: str) -> Item:
    return Item("a", {"answers": list(answers)})


def graded(env: DocVQAEnv, reply: str, *answers: str) -> tuple[float, float]:
    score = env.score(golds(*answers), env.answer(reply))
    return round(score.soft, 6), score.hard


EXAMPLES = [
    ("<answer>Paris</answer>", "paris", 1.0, 1),
    ("<answer>Pariss</answer>", "paris", 0.833333, 0),
    ("<answer>12/3/1999</answer>", "12/03/1999", 0.9, 0),
    ("<answer>abc</answer>", "abx", 0.666667, 0),
    ("<answer>abcd</answer>", "abxy", 0.0, 0),
    ("<answer>$1,000</answer>", "1000", 0.666667, 0),
]


@pytest.mark.parametrize("scoring", ["strict", "paper"])
@pytest.mark.parametrize(("reply", "gold", "soft", "hard"), EXAMPLES)
def test_worked_examples(scoring: str, reply: str, gold: str, soft: float, hard: int) -> None:
    assert graded(DocVQAEnv(scoring=scoring), reply, gold) == (soft, hard)


def test_where_the_two_ways_of_scoring_differ() -> None:
    strict, paper = DocVQAEnv(), DocVQAEnv(scoring="paper")
    twice = "<answer>a</answer> junk </answer>"
    assert (strict.answer(twice), paper.answer(twice)) == ("a", "a</answer> junk")
    assert graded(strict, twice, "a") == (1.0, 1)
    assert graded(paper, twice, "a") == (0.0, 0)
    long = "<answer>" + "x" * 1001 + "</answer>"
    assert graded(strict, long, "x" * 1000) == (0.999001, 0)
    assert graded(paper, long, "x" * 1000) == (0.999001, 1)
    assert graded(strict, "<answer></answer>") == (0.0, 0)  # W5: no free marks
    assert graded(paper, "<answer></answer>") == (1.0, 1)


def test_the_best_of_the_accepted_answers_counts() -> None:
    assert graded(DocVQAEnv(), "<answer>33</answer>", "33 days", "33") == (1.0, 1)


def test_without_a_tag_the_last_line_is_the_answer() -> None:
    assert DocVQAEnv().answer("It says:\n\n 3 May \n") == "3 May"


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=3))
def test_scoring_never_fails_and_a_gold_scores_one(reply: str, answers: list[str]) -> None:
    for scoring in ("strict", "paper"):
        env = DocVQAEnv(scoring=scoring)
        assert 0 <= graded(env, reply, *answers)[0] <= 1
        assert env.score(golds(*answers), answers[-1]).hard == 1


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"env\.image_detail is 'huge'"):
        DocVQAEnv(image_detail="huge")
    with pytest.raises(DataError, match=r"env\.data_root: nowhere is not a folder"):
        DocVQAEnv(data_root="nowhere", split_dir="data/samples/docvqa").setup({})


def test_missing_data_are_told_with_the_command_that_makes_them() -> None:
    with pytest.raises(DataError, match="nowhere does not exist; `skillopt data materialize docvqa` makes it"):
        DocVQAEnv(split_dir="nowhere").setup({})


def test_the_shipped_configuration_has_the_published_values() -> None:
    config = resolve(ROOT / "configs" / "docvqa" / "default.yaml")
    env = config.env
    assert (env.name, env.split_mode, env.split_dir) == ("docvqa", "split_dir", "data/docvqa/splits")
    assert (env.workers, env.max_turns, env.exec_timeout, env.limit) == (16, 1, 120.0, 0)
    assert (env.image_detail, env.scoring, env.max_completion_tokens) == ("auto", "strict", 16384)
    assert (config.train.batch_size, config.gradient.minibatch_size, config.optimizer.learning_rate) == (40, 8, 4)


# --- data


@pytest.mark.parametrize("table", [True, False])
def test_tables_and_json_are_read(make_env: Make, table: bool) -> None:  # W18
    env = make_env([{"answer": "1,234", "topic": "form"}], table=table)
    item = first(env)
    assert env.references(item) == ["1,234"]
    assert env.get_task_types() == ["form", "docvqa"]
    assert env.reference(item) == "1,234"


def test_a_file_is_cut_by_a_ratio(make_env: Make, tmp_path: Path) -> None:  # W18
    make_env()
    rows = [{"id": f"r{n}", "question": "Q?", "answer": "['1.50']", "image_path": "pages/p.png"} for n in range(10)]
    (tmp_path / "data" / "all.json").write_text(json.dumps(rows), encoding="utf-8")
    path = str(tmp_path / "data" / "all.json")
    env = DocVQAEnv(split_mode="ratio", data_path=path, out_root=str(tmp_path / "run"))
    env.setup({})
    assert [len(env.get_dataloader().items(split)) for split in ("train", "val", "test")] == [2, 1, 7]
    again = DocVQAEnv(split_mode="ratio", data_path=path, out_root=str(tmp_path / "run"))
    again.setup({})
    assert again.get_dataloader().fingerprint == env.get_dataloader().fingerprint
    assert env.references(first(env)) == ["1.50"]


def test_images_lie_beside_the_data_or_in_the_working_directory_or_where_one_says(
    make_env: Make, tmp_path: Path, make_png: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "s.png").write_bytes(make_png(5, 5))
    env = make_env([{"image_path": "scans/s.png"}])
    assert env.pages(first(env))[0].path == tmp_path / "scans" / "s.png"
    assert env.pages(first(env, "val"))[0].path == tmp_path / "data" / "pages" / "p.png"
    with pytest.raises(DataError, match=r"item 't1': the image 'pages/p\.png' does not exist in .*scans"):
        make_env(data_root="scans")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"answer": ""}, "item 't1': field 'answer' is missing or empty"),  # W5
        ({"answer": "[]"}, "item 't1': field 'answer' is missing or empty"),
        ({"question": " "}, "item 't1': field 'question' is missing or empty"),
        ({"image_path": ""}, "item 't1': field 'image_path' is missing or empty"),
        ({"image_path": "pages/no.png"}, r"item 't1': the image 'pages/no\.png' does not exist"),
        ({"image_path": "../../etc/x.png"}, "item 't1': the image .* lies outside"),  # W6
        ({"image_path": "/etc/passwd"}, "item 't1': the image '/etc/passwd' lies outside"),
        ({"image_path": "t.txt"}, r"item 't1': the image .*t\.txt is no PNG, JPEG, GIF or WebP"),
        ({"question": "", "answer": "", "image_path": "x.png"}, "`skillopt data materialize docvqa`"),
    ],
)
@pytest.mark.parametrize("scoring", ["strict", "paper"])
def test_items_that_nobody_could_do_are_refused_at_load(
    make_env: Make, tmp_path: Path, row: dict[str, str], why: str, scoring: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match=why):
        make_env([row], scoring=scoring)


def test_a_large_page_needs_the_library_at_load(make_env: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    make_env()
    monkeypatch.setattr(images, "MAX_PIXELS", 5)
    with pytest.raises(MissingExtraError, match="pip install"):
        make_env()


def test_another_picture_under_the_same_name_is_another_item(
    make_env: Make, tmp_path: Path, make_png: Callable[..., bytes]
) -> None:
    before = make_env().get_dataloader().fingerprint
    assert make_env().get_dataloader().fingerprint == before
    (tmp_path / "data" / "pages" / "p.png").write_bytes(make_png(shade=99))
    assert make_env(images=False).get_dataloader().fingerprint != before


def test_pages_that_train_and_test_share_are_told(make_env: Make) -> None:
    assert "1 test item(s) ask about an image that train or val items ask about too: e1." in (
        make_env().get_dataloader().notices
    )


def test_an_item_is_the_same_after_a_second_reading(make_env: Make) -> None:
    env = make_env()
    row = first(env).to_dict()
    assert env.normalize(row) == row
    assert check_items([env.normalize(row)], source="x")[0] == first(env)


# --- messages


def test_the_constant_part_comes_first_and_the_image_travels_whole(
    make_env: Make, make_png: Callable[..., bytes]
) -> None:
    env = make_env([{"question": "What is {this}?"}])
    system, user = env.messages(first(env), "- Copy the value.")
    assert system["role"] == "system"
    assert system["content"].endswith("## Skill\n\n- Copy the value.")
    assert "<answer>" in system["content"]
    assert env.messages(first(env, "val"), "- Copy the value.")[0] == system
    image, text = user["content"]
    assert set(image["image_url"]) == {"url"}
    kind, _, data = image["image_url"]["url"].partition(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", make_png())
    assert text["text"].startswith("Question: What is {this}?\n")


@pytest.mark.parametrize("detail", ["low", "high"])
def test_the_detail_is_sent_when_it_is_not_auto(make_env: Make, detail: str) -> None:
    env = make_env(image_detail=detail)
    assert env.messages(first(env), "")[1]["content"][0]["image_url"]["detail"] == detail


def test_settings_and_images_are_part_of_the_fingerprint(make_env: Make) -> None:
    plain = make_env().fingerprint()
    assert make_env().fingerprint() == plain
    assert make_env(workers=3, limit=1, exec_timeout=5).fingerprint() == plain
    others = {
        make_env(**keys).fingerprint() for keys in ({"scoring": "paper"}, {"image_detail": "low"}, {"max_turns": 2})
    }
    assert len(others | {plain}) == 4


# --- rollouts


def test_a_result_names_the_image_and_does_not_hold_it(
    make_env: Make, bench: Any, make_png: Callable[..., bytes]
) -> None:
    env = make_env()
    session = bench.session(lambda text, _: "It is <answer>4 May</answer>")
    (result,) = run_items(env, [first(env)], "skill text", bench.context(session))
    encoded = base64.b64encode(make_png()).decode()
    assert encoded in json.dumps([dict(m) for m in session.seen[0].messages])
    kept = json.dumps(result.to_dict())
    assert "base64" not in kept and encoded not in kept  # W27
    (page,) = env.pages(first(env))
    assert result.extras["image_paths"] == ["pages/p.png"]
    assert result.extras["image_hashes"] == [page.sha256]
    assert result.extras["gold_answers"] == ["3 May"]
    shown = result.trajectory[0]["content"]
    assert shown.startswith(f"[image p.png, image/png, 3 x 2 pixels, sha256 {page.sha256[:16]}]\nQuestion: What is")
    assert result.trajectory[1]["content"] == "It is <answer>4 May</answer>"
    assert (result.n_turns, result.question, result.reference_text) == (1, "What is the date?", "3 May")
    assert (result.predicted_answer, result.task_type, result.hard, result.soft) == ("4 May", "docvqa", 0.0, 0.8)
    assert "skill text" in result.target_system_prompt


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("<answer>4 May</answer>", "near_miss: expected '3 May', got '4 May' (ANLS 0.80)."),  # W30
        ("<answer>no idea</answer>", "wrong_answer: expected '3 May', got 'no idea' (ANLS 0.00)."),
        ("<answer> </answer>", "no_answer: the answer is empty."),
        ("<answer>3 MAY</answer>", ""),
    ],
)
def test_every_failure_has_its_reason(make_env: Make, bench: Any, reply: str, reason: str) -> None:
    env = make_env()
    (result,) = run_items(env, [first(env)], "", bench.context(bench.session(lambda *_: reply)))
    assert result.fail_reason == reason


def test_later_turns_keep_image_and_question(make_env: Make, bench: Any) -> None:
    env = make_env(max_turns=3)
    replies = iter(["The page has two dates.", "It is <answer>3 May</answer>", "never asked"])
    session = bench.session(lambda *_: next(replies))
    (result,) = run_items(env, [first(env)], "", bench.context(session))
    assert (result.hard, result.n_turns) == (1.0, 2)
    start, later = (list(call.messages) for call in session.seen)
    assert later[: len(start)] == start
    assert [m["role"] for m in later] == ["system", "user", "assistant", "user"]
    assert later[2]["content"] == "The page has two dates."


def test_an_item_whose_time_is_over_is_an_error_and_is_tried_again_by_the_next_run(make_env: Make, bench: Any) -> None:
    env = make_env([{"id": "slow", "question": "Slow?"}, {"id": "quick"}])
    items = list(env.get_dataloader().items("train"))

    def stuck(text: str, cancel: CancelToken) -> str:
        if "Slow" in text:
            cancel.wait(30)
        return "<answer>3 May</answer>"

    slow, quick = run_items(env, items, "", bench.context(bench.session(stuck), item_timeout=1.0, item_retries=0))
    assert (slow.status, quick.status, quick.hard) == ("error", "ok", 1.0)
    assert "not finished within 1 s" in slow.error
    session = bench.session(lambda *_: "<answer>3 May</answer>")
    assert [r.hard for r in run_items(env, items, "", bench.context(session))] == [1.0, 1.0]
    assert len(session.calls) == 1


def test_a_failing_endpoint_is_no_score(make_env: Make, bench: Any) -> None:  # W7
    def broken(*_: Any) -> str:
        raise TransientError("503")

    env = make_env()
    (result,) = run_items(env, [first(env)], "", bench.context(bench.session(broken), item_retries=0))
    assert (result.status, result.ok) == ("error", False)


def test_an_image_that_disappears_during_a_run_is_an_error(make_env: Make, bench: Any, tmp_path: Path) -> None:
    env = make_env()
    (tmp_path / "data" / "pages" / "p.png").unlink()
    (result,) = run_items(env, [first(env)], "", bench.context(bench.session(), item_retries=0))
    assert result.status == "error"
    assert "cannot be read any more" in result.error


def test_hostile_ids_stay_names(make_env: Make, bench: Any, tmp_path: Path) -> None:  # W6
    env = make_env([{"id": "../../esc"}, {"id": "/etc/x:1"}])
    before = sorted(tmp_path.rglob("*"))
    items = list(env.get_dataloader().items("train"))
    results = run_items(env, items, "", bench.context(bench.session(lambda *_: "<answer>3 May</answer>")))
    assert [r.id for r in results] == ["../../esc", "/etc/x:1"]
    assert [p for p in sorted(tmp_path.rglob("*")) if not p.name.startswith("store.sqlite")] == [
        p for p in before if not p.name.startswith("store.sqlite")
    ]
