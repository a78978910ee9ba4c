"""The public functions of `skillopt.model`, and that importing it costs nothing."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

import skillopt.model as model
from skillopt.errors import ConfigError
from skillopt.model import active
from skillopt.testing import LoopbackServer, ScriptedModel, chat_completion

VARIABLES = (
    "OPTIMIZER_BACKEND",
    "TARGET_BACKEND",
    "OPENAI_COMPATIBLE_BASE_URL",
    "OPENAI_COMPATIBLE_API_KEY",
    "OPENAI_COMPATIBLE_MODEL",
    "OPTIMIZER_DEPLOYMENT",
    "TARGET_DEPLOYMENT",
)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = active._DEFAULT.change(lambda _: None)
    yield
    active._DEFAULT.change(lambda _: before)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(lambda request: request["model"]) as server:
        model.set_backend("openai-compatible")
        model.configure_openai_compatible(base_url=server.url, api_key="key-abcdef")
        yield server


def test_chat_functions(server: LoopbackServer) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    model.configure_openai_compatible(optimizer_model="opt", target_model="tgt")
    assert model.chat_optimizer("s", "u") == ("opt", usage)
    assert model.chat_target(system="s", user="u", max_completion_tokens=9, retries=0, timeout=60.0) == ("tgt", usage)
    assert model.chat_with_deployment("other", "s", "u") == ("other", usage)
    assert model.chat_optimizer_messages([{"role": "user", "content": "u"}])[0] == "opt"
    assert model.chat_messages_with_deployment("x", [{"role": "user", "content": "u"}])[0] == "x"
    assert server.requests[1].body["max_tokens"] == 9
    summary = model.get_token_summary()
    assert {stage: row["calls"] for stage, row in summary.items()} == {
        "custom": 2,
        "optimizer": 2,
        "target": 1,
        "_total": 5,
    }
    model.reset_token_tracker()
    assert model.get_token_summary()["_total"]["calls"] == 0


def test_messages_with_tools() -> None:
    calls = [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    body = chat_completion(None, finish_reason="tool_calls", tool_calls=calls)
    with LoopbackServer(body) as server:
        model.set_backend("openai_compatible")
        model.configure_openai_compatible(base_url=server.url)
        tools = [{"type": "function", "function": {"name": "f"}}]
        message, _ = model.chat_target_messages(
            [{"role": "user", "content": "u"}], tools=tools, tool_choice="required", return_message=True
        )
    assert message.tool_calls[0].function.name == "f"
    assert message.tool_calls[0].model_dump(mode="json") == calls[0]
    assert server.requests[0].body["tool_choice"] == "required"


def test_backend_names_and_kinds() -> None:
    assert model.set_backend(" Compat ") == "openai_compatible"
    assert (model.get_optimizer_backend(), model.get_target_backend()) == ("openai_compatible", "openai_compatible")
    assert model.is_optimizer_chat_backend() and model.is_target_chat_backend()
    assert not model.is_target_exec_backend()
    model.set_target_backend("mock")
    assert model.get_backend_name() == "openai_compatible+mock_chat"
    model.set_optimizer_backend("mock_chat")
    assert model.get_backend_name() == "mock_chat"
    model.set_backend("codex")
    assert model.get_backend_name() == "codex" and model.is_target_exec_backend()
    with pytest.raises(NotImplementedError, match="Exec backends"):
        model.chat_target("s", "u")
    model.set_optimizer_backend(None)
    assert model.get_optimizer_backend() == "openai_chat"
    assert model.set_backend("azure") == "azure_openai" == model.get_backend_name()


def test_a_wrong_setting_changes_nothing(server: LoopbackServer) -> None:
    with pytest.raises(ValueError, match="Unsupported target backend"):
        model.set_target_backend("opnai")
    with pytest.raises(ConfigError, match="max_tokens"):
        model.configure_openai_compatible(base_url="http://elsewhere", max_tokens=-1)
    with pytest.raises(ValueError, match="unknown backend"):
        model.set_backend("nothing")
    assert model.chat_target("s", "u")[0] == "gpt-4o-mini"


def test_models_and_blank_values(server: LoopbackServer) -> None:
    model.set_target_deployment("t")
    model.set_optimizer_deployment("o")
    model.set_reasoning_effort("high")
    model.configure_openai_compatible(base_url="", model="", api_key="")
    assert (model.chat_target("s", "u")[0], model.chat_optimizer("s", "u")[0]) == ("t", "o")
    assert "Authorization" not in server.requests[-1].headers
    assert model.active_session().role("target").effort == "high"
    model.set_reasoning_effort(None)
    assert model.active_session().role("target").effort == ""


def test_the_environment_is_read_for_the_first_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackServer(lambda request: request["model"]) as server:
        monkeypatch.setenv("TARGET_BACKEND", "openai_compatible")
        monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_COMPATIBLE_MODEL", "from-env")
        assert model.chat_target("s", "u")[0] == "from-env"


def test_use_session_is_seen_inside_only_and_setters_touch_only_what_they_name() -> None:
    scripted = ScriptedModel(lambda call: "scripted")
    session = model.Session({"target": scripted.role(), "optimizer": scripted.role("optimizer")})
    with pytest.raises(ConfigError, match="No model session is active"):
        model.active_session()
    heard: list[str] = []
    with model.use_session(session):
        assert model.chat_target("s", "u")[0] == "scripted"
        thread = threading.Thread(target=lambda: heard.append(model.chat_target("s", "u")[0]))
        thread.start()
        thread.join()
        model.set_target_deployment("renamed")
        assert model.active_session().role("target").model == "renamed"
        assert model.active_session().role("optimizer").model == "scripted"
        assert model.get_target_backend() == "mock_chat"
        assert model.get_token_summary()["_total"]["calls"] == 2
    assert heard == ["scripted"]
    assert active.current_session() is None
    assert session.role("target").model == "scripted"


def test_two_threads_with_their_own_sessions() -> None:
    barrier = threading.Barrier(2)
    said: dict[str, str] = {}

    def work(name: str) -> None:
        with model.use_session(model.Session({"target": ScriptedModel(lambda call: name).role()})):
            barrier.wait(60)
            said[name] = model.chat_target("s", "u")[0]
            barrier.wait(60)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {"a": "a", "b": "b"}


def scripted_session(name: str) -> model.Session:
    return model.Session({"target": ScriptedModel(lambda call: name).role()})


def in_a_bare_thread(call: Callable[[], object]) -> object:
    """What `call` gives in a thread that carries no context, as the threads of a custom environment do."""
    found: list[object] = []

    def work() -> None:
        try:
            found.append(call())
        except ConfigError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_without_context_never_gets_the_session_of_another_run() -> None:
    first, second = scripted_session("first"), scripted_session("second")
    inside, leave = threading.Event(), threading.Event()

    def other_run() -> None:
        with model.use_session(second):
            inside.set()
            leave.wait(60)

    def ask() -> object:
        return model.chat_target("s", "u")[0]

    with model.use_session(first):
        assert in_a_bare_thread(ask) == "first"
        other = threading.Thread(target=other_run)
        other.start()
        inside.wait(60)
        refused = in_a_bare_thread(ask)
        assert isinstance(refused, ConfigError)
        assert "2 runs are under way" in str(refused) and "copy_context" in str(refused)
        assert ask() == "first"
        context = contextvars.copy_context()
        assert in_a_bare_thread(lambda: context.run(ask)) == "first"
        with model.use_session(scripted_session("third")):
            assert ask() == "third"
    assert in_a_bare_thread(ask) == "second"
    leave.set()
    other.join()
    assert active.current_session() is None
    assert (first.usage.summary()["_total"]["calls"], second.usage.summary()["_total"]["calls"]) == (3, 1)


def test_blocks_of_one_run_in_several_threads_are_no_riddle() -> None:
    session = scripted_session("mine")
    barrier = threading.Barrier(3)

    def work() -> None:
        with model.use_session(session):
            barrier.wait(60)
            barrier.wait(60)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    barrier.wait(60)
    assert in_a_bare_thread(lambda: model.chat_target("s", "u")[0]) == "mine"
    barrier.wait(60)
    for thread in threads:
        thread.join()


def test_what_is_set_in_a_block_reaches_its_threads() -> None:
    with model.use_session(scripted_session("x")):
        model.set_target_deployment("renamed")
        assert in_a_bare_thread(lambda: model.active_session().role("target").model) == "renamed"


def test_every_public_name_is_there() -> None:
    for name in model.__all__:
        assert getattr(model, name) is not None
    assert set(model.__all__) <= set(dir(model))
    with pytest.raises(AttributeError):
        model.nothing  # noqa: B018


@pytest.mark.parametrize(
    "module", ["skillopt.model", "skillopt.model.session", "skillopt.model.public", "skillopt.model.configure"]
)
def test_importing_is_light(module: str) -> None:
    heavy = ("requests", "urllib3", "pydantic", "tenacity", "openai", "yaml", "numpy", "tiktoken", "xllamacpp")
    code = f"import sys, {module}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
