"""Fresh calls have numbers that a resumed night gives again; like calls go one after another."""

from __future__ import annotations

import threading

from skillopt_sleep.backends.turns import FreshNumbers, Turns


def test_the_number_of_a_failed_call_goes_to_the_next() -> None:
    numbers = FreshNumbers()
    for key in ("a", "b", "c"):
        numbers.given_to(key, "prompt", numbers.take("prompt"))
    assert numbers.take("other prompt") == 1
    for key in ("c", "a", "unknown", "a"):
        numbers.give_back(key)
    assert [numbers.take("prompt") for _ in range(3)] == [1, 3, 4]


def test_one_key_is_used_by_one_thread_at_a_time_and_others_go_on() -> None:
    turns = Turns()
    seen: list[str] = []
    ready = threading.Event()

    def second() -> None:
        ready.set()
        with turns.of("k"):
            seen.append("second")

    with turns.of("k"):
        thread = threading.Thread(target=second)
        thread.start()
        assert ready.wait(30)
        with turns.of("another"):
            seen.append("first")
    thread.join(30)
    assert seen == ["first", "second"]
    assert len(turns) == 0
