from __future__ import annotations

from skillopt.datasets.audit import audit_choices
from skillopt.types import Item

CUE = "None of these is stronger"


def question(number, options, answer):
    return Item(str(number), {"id": str(number), "options": options, "answer": answer})


def plain(number):
    return [f"w{number}", f"x{number}", f"y{number}", f"z{number}"]


def test_c104_an_option_text_that_is_always_right_is_named():
    items = [question(i, [*plain(i)[:3], CUE], "D") for i in range(6)]
    items += [question(i, plain(i), "A") for i in range(6, 10)]
    (notice,) = audit_choices(items)
    assert f"'{CUE}' stands in 6 items and is right in 6 of them" in notice


def test_balanced_items_give_no_notice():
    items = [question(i, ["yes", "no"], "yes" if i % 2 else "no") for i in range(20)]
    assert audit_choices(items) == []


def test_few_items_prove_nothing():
    assert audit_choices([question(i, [*plain(i)[:3], CUE], "D") for i in range(3)]) == []


def test_answers_in_every_form():
    for answer in (CUE, CUE.upper() + ".", 3, "(D)", "d", ["D"]):
        assert len(audit_choices([question(i, [*plain(i)[:3], CUE], answer) for i in range(6)])) == 1
    for answer in (1, "1"):
        labelled = [question(i, {"0": plain(i)[0], "1": CUE, "2": "n", "3": "m"}, answer) for i in range(6)]
        assert any(CUE in notice for notice in audit_choices(labelled))


def test_items_without_usable_options_are_left_out():
    odd = [
        question(1, None, "A"),
        question(2, ["only"], "A"),
        question(3, ["a", "b"], "Z"),
        question(4, ["a", "b"], None),
    ]
    assert audit_choices([*odd, question(5, ["a", "b"], 9), question(6, ["a", "b"], []), Item("7", {"id": "7"})]) == []


def test_large_sets_and_other_field_names():
    items = [Item(str(i), {"id": str(i), "alternatives": [*plain(i)[:3], CUE], "truth": "D"}) for i in range(3000)]
    assert len(audit_choices(items, options_field="alternatives", answer_field="truth")) == 1
