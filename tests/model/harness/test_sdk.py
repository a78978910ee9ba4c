"""Agents through their vendors' SDKs: what the SDK is asked, how its answer is read, what ends with the attempt.

Played by small packages that stand where the SDKs are looked for; the same with the real SDKs, where they are
installed, which then start a fake command line.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import given_time

from skillopt import errors
from skillopt.model.harness.prompt import EMPTY_NOTE, rules
from skillopt.model.harness.sdk import ANSWER, answer_in, final_answer, write_launcher
from skillopt.model.harness.workspace import SKILL_PATH, Workspace
from skillopt.model.limiter import Limits
from skillopt.model.registry import load_backend
from skillopt.model.session import Session
from skillopt.model.values import CallContext, ModelCall, ModelReply
from skillopt.testing import CliTurn, FakeCli, cli_role, codex_turn, fake_claude_code, fake_codex
from skillopt.types import Usage
from skillopt.utils.process import child_environment, run_process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="checked on POSIX")

FAKES: Mapping[str, Callable[..., FakeCli]] = {"codex_exec": fake_codex, "claude_code_exec": fake_claude_code}
PACKAGES = {"codex_exec": "openai_codex_sdk", "claude_code_exec": "claude_agent_sdk"}
LOOK, EDIT = Workspace(skill="Say Paris."), Workspace(skill="Say Paris.", allow_file_edits=True)
BOTH = {"final_response": "It is <answer>Paris</answer>.", "final_answer": "Paris"}

CLAUDE = '''
import json, os, pathlib, subprocess, sys
from dataclasses import dataclass, field, asdict
from typing import Any
OPTIONS = """cli_path cwd add_dirs system_prompt output_format tools allowed_tools permission_mode setting_sources
strict_mcp_config extra_args max_buffer_size model effort max_thinking_tokens settings verbatim_prompts"""
ClaudeAgentOptions = __import__("dataclasses").make_dataclass(
    "ClaudeAgentOptions", [(name, Any, field(default=None)) for name in OPTIONS.split() if name not in @LACKS@]
)

@dataclass
class SystemMessage:
    subtype: str
    data: dict

@dataclass
class ToolUseBlock:
    id: str
    name: str
    input: dict

@dataclass
class AssistantMessage:
    content: list
    model: str

@dataclass
class ResultMessage:
    subtype: str = "success"
    is_error: bool = False
    result: str = ""
    usage: Any = None
    structured_output: Any = None
    model_usage: Any = None
    num_turns: int = 1
    stop_reason: str = "end_turn"

async def query(*, prompt, options):
    print("a package may print")
    said = {"prompt": prompt, "options": asdict(options), "env": dict(os.environ), "cwd": os.getcwd()}
    said["files"] = sorted(str(p) for p in pathlib.Path().rglob("*") if p.is_file())
    with open(r"@LOG@", "a") as log:
        log.write(json.dumps(said) + "\\n")
    yield SystemMessage("init", {"session_id": "s1", "model": "m1", "tools": ["Read"]})
    @DO@
'''

CODEX = """
import json, os, pathlib, subprocess

class Event:
    def __init__(self, **data):
        self.data = data

    def model_dump(self, mode):
        return self.data

class Thread:
    def __init__(self, said):
        self.said = said

    async def run_streamed(self, prompt, turn):
        self.said.update(prompt=prompt, turn=turn, cwd=os.getcwd())
        with open(r"@LOG@", "a") as log:
            log.write(json.dumps(self.said) + "\\n")
        return type("Turn", (), {"events": self.events()})

    async def events(self):
        @DO@

class Codex:
    def __init__(self, options):
        self.said = {"codex": options, "launcher": pathlib.Path(options["codexPathOverride"]).read_text()}

    def start_thread(self, options):
        return Thread({**self.said, "thread": options})
"""


class FakeSdk:
    """A package in the place of an SDK, which writes down what it is asked and then does `do`."""

    def __init__(self, folder: Path, backend: str, do: str, lacks: tuple[str, ...] = ()) -> None:
        self._log = folder / "asked.jsonl"
        source = CODEX if backend == "codex_exec" else CLAUDE
        indent = "        " if backend == "codex_exec" else "    "
        body = do.replace("\n", f"\n{indent}")
        source = source.replace("@LOG@", str(self._log)).replace("@DO@", body).replace("@LACKS@", repr(lacks))
        package = folder / "site" / PACKAGES[backend]
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(source, "utf-8")
        self.path = package.parent

    @property
    def asked(self) -> list[Any]:
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()]


MakeSdk = Callable[..., FakeSdk]


@pytest.fixture
def make_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeSdk:
    def make(backend: str, do: str, lacks: tuple[str, ...] = ()) -> FakeSdk:
        sdk = FakeSdk(tmp_path / "sdk", backend, do, lacks)
        monkeypatch.syspath_prepend(sdk.path)
        return sdk

    return make


@pytest.fixture
def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in PACKAGES.values():
        monkeypatch.setitem(sys.modules, package, None)


def call_of(workspace: Workspace = LOOK, task: str = "Which city?") -> ModelCall:
    return ModelCall(({"role": "user", "content": task},), stage="rollout", workspace=workspace)


def ask(backend: str, cli: FakeCli, workspace: Workspace = LOOK, **settings: Any) -> ModelReply:
    role = cli_role(backend, cli).with_settings(**{"use_sdk": "sdk", **settings})
    return load_backend(backend).complete(call_of(workspace), role, CallContext(60))


def session_of(backend: str, cli: FakeCli, **settings: Any) -> Session:
    role = cli_role(backend, cli).with_settings(use_sdk="sdk", **settings)
    return Session({"target": role}, limits=Limits(retry_first_wait_seconds=0.001))


def says(backend: str, data: Mapping[str, Any]) -> str:
    """What a fake SDK does to answer with a structured output."""
    if backend == "claude_code_exec":
        return (
            f"yield ResultMessage(structured_output={dict(data)!r}, usage={{'input_tokens': 10, 'output_tokens': 5}})"
        )
    text = json.dumps(data)
    return (
        f"yield Event(type='item.completed', item={{'type': 'agent_message', 'text': {text!r}}})\n"
        "yield Event(type='turn.completed', usage={'input_tokens': 10, 'cached_input_tokens': 0, 'output_tokens': 5})"
    )


# --- what it is asked ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workspace", [LOOK, EDIT], ids=["look", "edit"])
def test_what_the_sdk_of_claude_is_asked(tmp_path: Path, make_sdk: MakeSdk, workspace: Workspace) -> None:
    sdk, cli = make_sdk("claude_code_exec", says("claude_code_exec", BOTH)), fake_claude_code(tmp_path)
    edits, data = workspace.allow_file_edits, tmp_path / "data"
    data.mkdir()
    ask("claude_code_exec", cli, replace(workspace, data_dirs=(data,)))
    ((said),) = sdk.asked
    cwd, reads = said["cwd"], ["Read(./**)", f"Read(/{data}/**)"]
    assert said["prompt"] == "Do the task in `task.md`."
    assert said["options"] == {
        "cli_path": str(cli.path),
        "cwd": cwd,
        "add_dirs": [cwd, str(data)],
        "system_prompt": {
            "type": "preset",
            "preset": "claude_code",
            "append": rules(replace(workspace, data_dirs=(data,))),
        },
        "output_format": {"type": "json_schema", "schema": ANSWER},
        "tools": ["Read", "Grep", "Glob", *(["Edit", "Write", "Bash"] if edits else [])],
        "allowed_tools": [*reads, *(["Edit(./**)", "Bash"] if edits else [])],
        "permission_mode": "acceptEdits" if edits else "dontAsk",
        "setting_sources": [],
        "strict_mcp_config": True,
        "extra_args": {"disable-slash-commands": None, "no-session-persistence": None},
        "max_buffer_size": 8 * 1024 * 1024,
        "model": "fake",
        "effort": "medium",
        "max_thinking_tokens": 16384,
        "settings": None,
        "verbatim_prompts": True,
    }
    assert said["files"] == [SKILL_PATH, "task.md"]
    assert not Path(cwd).exists() and cli.calls == ()


def test_settings_reach_the_sdk_of_claude(tmp_path: Path, make_sdk: MakeSdk) -> None:
    sdk, cli = (
        make_sdk("claude_code_exec", says("claude_code_exec", BOTH), lacks=("verbatim_prompts",)),
        fake_claude_code(tmp_path),
    )
    role = replace(cli_role("claude_code_exec", cli), model="anthropic/claude-x")
    role = role.with_settings(use_sdk="sdk", profile="work", effort="off", max_thinking_tokens=0)
    load_backend("claude_code_exec").complete(call_of(), role, CallContext(60))
    options = sdk.asked[0]["options"]
    assert options["model"] == "claude-x" and options["effort"] is None and options["max_thinking_tokens"] == 0
    assert options["system_prompt"]["append"].endswith("\n\nProfile: work")
    assert json.loads(options["settings"]) == {"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}


@pytest.mark.parametrize("workspace", [LOOK, EDIT], ids=["look", "edit"])
def test_what_the_sdk_of_codex_is_asked(tmp_path: Path, make_sdk: MakeSdk, workspace: Workspace) -> None:
    sdk = make_sdk("codex_exec", says("codex_exec", BOTH))
    cli = FakeCli(tmp_path, "codex", CliTurn('[{"name": "mine", "enabled": true}]', when="mcp list --json", aside=True))
    image = tmp_path / "page.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    given = {"network_access": True, "web_search": True, "profile": "fast", "reasoning_effort": "high"}
    ask("codex_exec", cli, replace(workspace, images=(image,)), **given)
    (said,) = sdk.asked
    assert said["thread"] == {
        "working_directory": said["cwd"],
        "skip_git_repo_check": True,
        "sandbox_mode": "workspace-write" if workspace.allow_file_edits else "read-only",
        "network_access_enabled": True,
        "approval_policy": "never",
        "model": "fake",
        "model_reasoning_effort": "high",
    }
    text, attached = said["prompt"]
    assert text["text"].startswith("Read `task.md`")
    assert attached == {"type": "local_image", "path": f"{said['cwd']}/attachments/01_page.png"}
    assert said["turn"] == {"output_schema": ANSWER}
    launcher = said["launcher"].splitlines()[-1]
    assert launcher.startswith(f"exec {cli.path} exec --ephemeral --color never --ignore-rules -p fast -c ")
    for closed in ("mcp_servers.mine.enabled=false", "features.hooks=false", "notify=[]", 'web_search="live"'):
        assert closed in launcher
    assert not Path(said["codex"]["codexPathOverride"]).is_relative_to(said["cwd"])
    assert not Path(said["codex"]["codexPathOverride"]).exists()


def test_an_effort_that_the_sdk_of_codex_does_not_know_goes_past_it(tmp_path: Path, make_sdk: MakeSdk) -> None:
    sdk = make_sdk("codex_exec", says("codex_exec", BOTH))
    ask("codex_exec", fake_codex(tmp_path), reasoning_effort="xhigh")
    (said,) = sdk.asked
    assert "model_reasoning_effort" not in said["thread"] and 'model_reasoning_effort="xhigh"' in said["launcher"]


@pytest.mark.parametrize("backend", PACKAGES)
def test_the_sdk_gets_its_own_credentials_and_no_other(
    tmp_path: Path, make_sdk: MakeSdk, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # W3
    own = {"codex_exec": "CODEX_API_KEY", "claude_code_exec": "ANTHROPIC_API_KEY"}[backend]
    for name in (own, "QWEN_CHAT_API_KEY", "PYTHONPATH", "MY_TOKEN"):
        monkeypatch.setenv(name, "marked-secret-value")
    sdk = make_sdk(backend, says(backend, BOTH))
    reply = ask(backend, FAKES[backend](tmp_path))
    (said,) = sdk.asked
    env = said["env"] if "env" in said else said["codex"]["env"]
    assert {name for name, value in env.items() if value == "marked-secret-value"} == {own}
    assert reply.text == BOTH["final_response"]


# --- how its answer is read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (BOTH, "It is <answer>Paris</answer>."),
        ({"final_response": " ", "final_answer": "Paris"}, "<answer>Paris</answer>"),
        ({"final_answer": "<answer>Paris</answer>"}, "<answer>Paris</answer>"),
        ({"final_response": 7, "final_answer": None}, ""),
        ({}, ""),
    ],
)
def test_the_answer_in_a_structured_output(data: Mapping[str, Any], answer: str) -> None:
    assert final_answer(data) == answer
    assert answer_in(json.dumps(data)) == (answer or json.dumps(data))
    assert answer_in("plain words") == "plain words" and answer_in("[1]") == "[1]"


@pytest.mark.parametrize("backend", PACKAGES)
def test_an_answer_keeps_every_character(tmp_path: Path, make_sdk: MakeSdk, backend: str) -> None:
    text = "Gr\u00fc\u00dfe \u6771\u4eac\u2028\x85\n\u00a0"
    make_sdk(backend, says(backend, {"final_response": text, "final_answer": ""}))
    assert ask(backend, FAKES[backend](tmp_path)).text == text


@pytest.mark.parametrize("backend", PACKAGES)
def test_what_lies_beside_a_script_stands_in_for_no_library(
    tmp_path: Path, make_sdk: MakeSdk, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sdk(backend, says(backend, BOTH))
    (tmp_path / "script").mkdir()
    for name in ("asyncio", "dataclasses", "subprocess"):
        (tmp_path / "script" / f"{name}.py").write_text("raise SystemExit('shadowed')", "utf-8")
    monkeypatch.syspath_prepend(tmp_path / "script")
    assert ask(backend, FAKES[backend](tmp_path)).text == BOTH["final_response"]


@pytest.mark.parametrize("backend", PACKAGES)
def test_usage_is_counted_and_the_trace_says_sdk(tmp_path: Path, make_sdk: MakeSdk, backend: str) -> None:  # W45
    make_sdk(backend, says(backend, BOTH))
    reply = ask(backend, FAKES[backend](tmp_path / "bin"), replace(LOOK, trace_dir=tmp_path))
    assert reply.usage == Usage(1, 10, 5)
    slug = backend.partition("_")[0]
    kept = (tmp_path / f"{slug}_raw.txt").read_text("utf-8")
    assert kept.startswith(f"===== {slug.upper()} SDK ATTEMPT 1 =====\n") and "skillopt.end" not in kept
    if slug == "claude":
        trace = json.loads(reply.work.trace.partition("\n[stderr]")[0]) if reply.work else {}
        assert (trace["session_id"], trace["model"], trace["tools"], trace["num_turns"]) == ("s1", "m1", ["Read"], 1)
        assert [event["type"] for event in trace["messages"]] == ["system", "result"]


def test_a_structured_output_counts_also_when_the_session_then_fails(tmp_path: Path, make_sdk: MakeSdk) -> None:
    called = f"yield AssistantMessage([ToolUseBlock('t', 'StructuredOutput', {BOTH!r})], 'm')\n"
    failed = (
        "yield ResultMessage(subtype='error_max_turns', is_error=True, usage={'input_tokens': 3, 'output_tokens': 1})\n"
    )
    make_sdk("claude_code_exec", called + failed + "raise RuntimeError('exit code 1')")
    reply = ask("claude_code_exec", fake_claude_code(tmp_path))
    assert (reply.text, reply.usage) == (BOTH["final_response"], Usage(1, 3, 1))


def test_without_a_structured_output_the_last_words_are_the_answer(tmp_path: Path, make_sdk: MakeSdk) -> None:
    make_sdk("claude_code_exec", "yield ResultMessage(result='Paris', usage={'input_tokens': 3, 'output_tokens': 1})")
    assert ask("claude_code_exec", fake_claude_code(tmp_path)).text == "Paris"


@pytest.mark.parametrize(
    ("words", "kind"), [("rate limit reached", errors.RateLimitError), ("Please run /login", errors.AuthError)]
)
@pytest.mark.parametrize("backend", PACKAGES)
def test_known_faults_have_their_class(
    tmp_path: Path, make_sdk: MakeSdk, backend: str, words: str, kind: type[Exception]
) -> None:
    make_sdk(backend, f"raise RuntimeError({words!r})\nyield")
    with pytest.raises(kind, match="SDK"):
        ask(backend, FAKES[backend](tmp_path))


@pytest.mark.parametrize("do", ["raise RuntimeError('the wheel broke')\nyield", "os._exit(3)\nyield"])
@pytest.mark.parametrize("backend", PACKAGES)
def test_a_failed_attempt_is_an_error_and_not_begun_anew_through_the_command_line(
    tmp_path: Path, make_sdk: MakeSdk, backend: str, do: str
) -> None:  # W29
    sdk, cli = make_sdk(backend, do), FAKES[backend](tmp_path)
    with session_of(backend, cli) as session, pytest.raises(errors.AgentError, match="SDK"):
        session.call("target", call_of())
    assert len(sdk.asked) == 1 and cli.calls == ()


@pytest.mark.parametrize("backend", PACKAGES)
def test_an_empty_answer_is_asked_for_again_in_a_new_folder(tmp_path: Path, make_sdk: MakeSdk, backend: str) -> None:
    sdk = make_sdk(backend, says(backend, {}).replace("'{}'", "''"))
    with session_of(backend, FAKES[backend](tmp_path)) as session, pytest.raises(errors.EmptyReplyError):
        session.call("target", call_of())
    first, second = sdk.asked
    assert first["cwd"] != second["cwd"]
    assert EMPTY_NOTE not in first["prompt"] and EMPTY_NOTE in second["prompt"]


@pytest.mark.parametrize("backend", PACKAGES)
def test_a_time_that_is_over_ends_the_sdk_and_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:  # W28
    pids = tmp_path / "pids"
    sleeper = "subprocess.Popen(['sleep', '600'], start_new_session=True)"
    written = f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{p.pid}}')"
    hang = f"p = {sleeper}\n{written}\n__import__('time').sleep(600)\nyield"
    sdk = FakeSdk(tmp_path / "sdk", backend, hang)
    monkeypatch.syspath_prepend(sdk.path)
    cli = FAKES[backend](tmp_path)

    def hanging(seconds: float) -> None:
        with session_of(backend, cli) as session, pytest.raises(errors.DeadlineError):
            session.call("target", call_of(), timeout=seconds)

    given_time(hanging, lambda _: pids.exists())
    assert not any(_alive(int(pid)) for pid in pids.read_text().split())


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


# --- what cannot be used ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", PACKAGES)
def test_a_package_that_is_not_there_is_named_with_its_extra(tmp_path: Path, no_sdk: None, backend: str) -> None:
    cli = FAKES[backend](tmp_path)
    with pytest.raises(errors.MissingExtraError, match=r'use_sdk.*pip install "skillopt\[(codex|claude)\]"'):
        ask(backend, cli)
    assert cli.calls == () and cli.asides == ()


@pytest.mark.parametrize("backend", PACKAGES)
def test_a_package_that_cannot_be_imported_stops_the_run(tmp_path: Path, make_sdk: MakeSdk, backend: str) -> None:
    sdk = make_sdk(backend, "yield")
    (sdk.path / PACKAGES[backend] / "__init__.py").write_text("import no_such_module_of_anybody", "utf-8")
    with pytest.raises(errors.ModelSetupError, match="no_such_module_of_anybody"):
        ask(backend, FAKES[backend](tmp_path))


def test_a_version_without_an_option_that_is_needed_stops_the_run(tmp_path: Path, make_sdk: MakeSdk) -> None:
    sdk = make_sdk("claude_code_exec", "yield", lacks=("tools", "strict_mcp_config"))
    with pytest.raises(
        errors.ModelSetupError, match=r"no option strict_mcp_config, tools\..*update the package claude_"
    ):
        ask("claude_code_exec", fake_claude_code(tmp_path))
    assert sdk.asked == []


@pytest.mark.parametrize("backend", PACKAGES)
def test_a_missing_program_is_named_with_its_setting(tmp_path: Path, make_sdk: MakeSdk, backend: str) -> None:
    sdk = make_sdk(backend, "yield")
    with pytest.raises(errors.ModelSetupError, match=r"could not be executed.*_path or the environment variable"):
        ask(backend, FAKES[backend](tmp_path), path=str(tmp_path / "nothing"))
    assert sdk.asked == []


def test_without_a_claude_on_the_path_the_one_of_the_sdk_is_used(
    tmp_path: Path, make_sdk: MakeSdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk, cli = make_sdk("claude_code_exec", says("claude_code_exec", BOTH)), fake_claude_code(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(errors.ModelSetupError, match="there is no claude"):
        ask("claude_code_exec", cli, path="claude")
    own = sdk.path / "claude_agent_sdk" / "_bundled" / "claude"
    own.parent.mkdir()
    own.write_text("")
    ask("claude_code_exec", cli, path="claude")
    assert sdk.asked[0]["options"]["cli_path"] == str(own)


def test_a_launcher_runs_only_what_it_knows(tmp_path: Path) -> None:
    write_launcher(tmp_path / "run", "/bin/echo", "exec", ["-c", "a='b' \"$HOME\"", "two words"])

    def run(*words: str) -> tuple[int | None, str]:
        done = run_process([str(tmp_path / "run"), *words], cwd=tmp_path, env=child_environment(), timeout=60)
        return done.code, done.stdout

    assert run("exec", "--json", "x y") == (0, "exec -c a='b' \"$HOME\" two words --json x y\n")
    assert run("resume", "exec") == (64, "") and run() == (64, "")


# --- the real packages -----------------------------------------------------------------------------------------------


@pytest.fixture(params=list(PACKAGES))
def real(request: pytest.FixtureRequest) -> Iterator[str]:
    """A backend whose SDK is installed."""
    backend: str = request.param
    title, extra = {"codex_exec": ("Codex SDK", "codex"), "claude_code_exec": ("Claude Agent SDK", "claude")}[backend]
    if importlib.util.find_spec(PACKAGES[backend]) is None:
        pytest.skip(f'the {title} is not installed: pip install "skillopt[{extra}]"')
    yield backend


def test_a_run_through_the_real_sdk(tmp_path: Path, real: str) -> None:
    cli = FAKES[real](tmp_path / "bin", *([json.dumps(BOTH)] if real == "codex_exec" else []), leaves={"x.txt": "made"})
    if real == "claude_code_exec":
        cli = fake_claude_code(tmp_path / "more", "words", structured_output=BOTH, leaves={"x.txt": "made"})
    reply = ask(real, cli, replace(EDIT, outputs=("x.txt",)))
    (call,) = cli.calls
    assert reply.text == BOTH["final_response"] and reply.work is not None and reply.work.files == {"x.txt": "made"}
    assert reply.usage == (Usage(1, 11, 5, 3, 2) if real == "codex_exec" else Usage(1, 10, 5))
    assert sorted(call.files) == [SKILL_PATH, "task.md"]
    if real == "codex_exec":
        assert call.argv[:5] == ("exec", "--ephemeral", "--color", "never", "--ignore-rules")
        assert (call.value("--sandbox"), call.value("--cd"), call.value("--model")) == (
            "workspace-write",
            call.cwd,
            "fake",
        )
        assert {"features.hooks=false", 'approval_policy="never"', "--skip-git-repo-check"} <= set(call.argv)
        assert call.stdin.startswith("Read `task.md`") and not Path(str(call.value("--output-schema"))).exists()
    else:
        assert call.value("--append-system-prompt") == rules(EDIT)
        assert call.value("--tools") == "Read,Grep,Glob,Edit,Write,Bash"
        assert {"--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"} <= set(call.argv)
        assert "--setting-sources=" in call.argv or call.value("--setting-sources") == ""
        assert call.value("--allowedTools") == "Read(./**),Edit(./**),Bash"
        assert json.loads(str(call.value("--json-schema"))) == ANSWER
        assert "Do the task in `task.md`." in call.stdin


def test_faults_through_the_real_sdk(tmp_path: Path, real: str) -> None:
    if real == "codex_exec":
        cli = FakeCli(tmp_path, "codex", codex_turn(error="You've hit your usage limit."))
        expected: type[Exception] = errors.RateLimitedUntilError
    else:
        cli = fake_claude_code(tmp_path, "API Error: 529 overloaded", is_error=True, code=1)
        expected = errors.TransientError
    with pytest.raises(expected, match=r"usage limit|overloaded"):
        ask(real, cli)


def test_the_real_sdk_ends_with_the_attempt(tmp_path: Path, real: str) -> None:
    def hanging(seconds: float) -> FakeCli:
        cli = FAKES[real](tmp_path / str(seconds), "", hang=True, daemons=1, stdout="")
        with session_of(real, cli) as session, pytest.raises(errors.DeadlineError):
            session.call("target", call_of(), timeout=seconds)
        return cli

    cli = given_time(hanging, lambda cli: bool(cli.calls))
    assert len(cli.calls) == 1 and len(cli.calls[0].pids) == 2 and cli.survivors == ()


@pytest.mark.parametrize("real", ["codex_exec"], indirect=True)
def test_the_real_sdk_of_codex_outlives_long_lines_and_events_of_tomorrow(tmp_path: Path, real: str) -> None:
    turn = codex_turn("Paris")
    command = {"id": "c", "type": "command_execution", "command": "ls", "exit_code": None}
    strange = (
        {"type": "item.completed", "item": {**command, "aggregated_output": "x" * 300_000, "status": "completed"}},
        {"type": "item.completed", "item": {**command, "aggregated_output": "", "status": "declined"}},
        {"type": "sometime.later", "what": 1},
    )
    lines = "".join(json.dumps(event) + "\n" for event in strange)
    cli = FakeCli(tmp_path, "codex", replace(turn, stdout="no event\n" + lines + turn.stdout))
    reply = ask(real, cli)
    assert reply.text == "Paris" and reply.usage == Usage(1, 11, 5, 3, 2)
