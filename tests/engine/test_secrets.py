"""No secret of any backend in anything that a run leaves or shows. A new backend's row is enough to be covered.

Every secret setting of every row, and every variable with a key or token that a program is handed, gets a value of its
own without the shape of a known key. Each backend then does a run in which everything that can be echoed is echoed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from worlds import World, write_data

import skillopt.testing as fakes
from skillopt import api
from skillopt.cli.main import main as skillopt_main
from skillopt.cli.train import main as train_main
from skillopt.config.envfile import variables
from skillopt.config.providers import LABELS, PROVIDERS, ROLES, Provider, available_backends
from skillopt.errors import AuthError, SkillOptError
from skillopt.testing import CliTurn, FakeCli, Fault, LoopbackServer, chat_completion, responses_body, status
from skillopt.utils.redact import is_secret_name

pytestmark = pytest.mark.filterwarnings("ignore")  # a warning must not stop a run, and its words are looked at too
NOTHING = json.dumps({"reasoning": "none", "patch": {"reasoning": "none", "edits": []}, "edits": []})
MARK_CHARS = 12
NEEDS_A_PACKAGE = ("local_chat",)  # no key, no address; its own tests run where the package is


def mark(name: str) -> str:
    """A secret that looks like none; its first MARK_CHARS characters are enough to tell it."""
    return f"zq{hashlib.sha256(name.encode()).hexdigest()[:10]}zq{name.lower().replace('_', 'x')}"


def own_variables(row: Provider) -> set[str]:
    """The variables that a backend's module names: what its program may be handed."""
    module = importlib.import_module(row.module or "")
    groups = [value for value in vars(module).values() if isinstance(value, tuple | Mapping)]
    texts = [part for group in groups for part in (_flat(group.values()) if isinstance(group, Mapping) else group)]
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", text)}


def _flat(values: Any) -> list[Any]:
    return [part for value in values for part in (value if isinstance(value, tuple) else (value,))]


def available_rows() -> list[Provider]:
    return [PROVIDERS[name] for name in available_backends()]


def secret_variables() -> set[str]:
    fields = [field for row in PROVIDERS.values() for field in row.fields if field.secret]
    handed = {name for row in available_rows() for name in own_variables(row)}
    return {name for field in fields for name in variables(field)} | {
        name for name in handed if is_secret_name(name) or re.search(r"TOKEN(?!S)|API_KEY", name)
    }


MARKS = {name: mark(name) for name in sorted(secret_variables())}


def leaks(text: str, allowed: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    return [name for name, value in MARKS.items() if value[:MARK_CHARS] in text and name not in allowed]


def test_there_is_something_to_look_for() -> None:
    assert {"OPENAI_COMPATIBLE_API_KEY", "TARGET_QWEN_CHAT_API_KEY", "AZURE_OPENAI_API_KEY"} <= MARKS.keys()
    assert {"ANTHROPIC_API_KEY", "GITHUB_TOKEN", "CODEX_API_KEY"} <= MARKS.keys()
    assert len({value[:MARK_CHARS] for value in MARKS.values()}) == len(MARKS)


def echo(values: Mapping[str, str]) -> str:
    """What an unkind server or program says of what it was given: with and without a label."""
    return "\n".join(f"{name}={value}; {name}: {value} and {value}" for name, value in values.items())


@dataclass
class Stage:
    """One backend with a server or a program that tells all it knows."""

    row: Provider
    world: World
    environ: dict[str, str]
    cli: FakeCli | None = None
    model: dict[str, Any] = field(default_factory=dict)

    def config(self, **sections: Mapping[str, Any]) -> Path:
        roles = [role for role in ROLES if role in self.row.roles and (role != "target" or self.row.kind != "both")]
        both = LABELS.get(self.row.name) == (self.row.name, self.row.name)
        model = {
            "backend": self.row.name if self.row.kind == "chat" and both else "openai_compatible",
            "retries": 0,
            "target": "m",
            "optimizer": "m",
            **{f"{role}_backend": self.row.name for role in roles},
            **self.model,
        }
        small: dict[str, dict[str, Any]] = {
            "model": model,
            "train": {"num_epochs": 1, "batch_size": 4},
            "gradient": {"minibatch_size": 2},
            "env": {"item_retries": 0, "max_error_rate": 1.0, "workers": 1},
        }
        return self.world.config(**{name: {**small.get(name, {}), **sections.get(name, {})} for name in small})

    @property
    def text(self) -> str:
        """Everything in every file of the run, as text; the store's pages too."""
        files = [path for path in self.world.out_root.rglob("*") if path.is_file()]
        assert files
        return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files)


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    return responses_body(NOTHING) if "input" in request else chat_completion(NOTHING)


class Unkind:
    """Fails each request for which `when` holds, with `codes` in turn, and repeats every header that came with it."""

    def __init__(self, when: Callable[[int], bool], codes: tuple[int, ...]) -> None:
        self.when, self.codes = when, codes
        self.server: LoopbackServer | None = None

    def __call__(self, number: int) -> Fault | None:
        if self.server is None or not self.when(number):
            return None
        request = self.server.requests[number - 1]
        body = json.dumps({"error": {"message": echo(request.headers), "code": request.key}})
        headers = {"retry-after-ms": "1", "x-request-id": request.key or "none"}
        return status(self.codes[number // 3 % len(self.codes)], headers, body=body)


def fake(row: Provider, folder: Path, *, broken: bool = False) -> FakeCli:
    """The fake of a program, which fails and prints its environment now and then, or always."""
    program = str(next(field.default for field in row.fields if field.name == "path"))
    maker = getattr(fakes, f"fake_{program.partition('-')[0]}")
    folder.mkdir()
    maker(folder, NOTHING)
    good = json.loads(next(folder.glob("*/script.json")).read_text("utf-8"))[0]
    handed = {name: MARKS[name] for name in sorted(own_variables(row) & MARKS.keys())}
    said = echo(handed) if broken else " ".join(handed.values())
    turns = [CliTurn(stderr=said, code=1), CliTurn(stdout=said, code=1), CliTurn(stdout=said, stderr=said)]
    script = turns if broken else [CliTurn(**good), CliTurn(**good), turns[0], CliTurn(**good), turns[1], turns[2]]
    acted = folder / "acted"
    acted.mkdir()
    return FakeCli(acted, program, [*script, CliTurn(**good)] if not broken else script)


@pytest.fixture
def set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    opened: list[LoopbackServer] = []

    def make(backend: str, unkind: Unkind, *, broken: bool = False) -> Stage:
        row = PROVIDERS[backend]
        server = unkind.server = LoopbackServer(answer, faults=unkind)
        server.__enter__()
        opened.append(server)
        write_data(tmp_path / "data", train=4, val=3, test=2)
        stage = Stage(row, World(tmp_path, server), dict(MARKS))
        if any(field.name == "path" for field in row.fields):
            stage.cli = fake(row, tmp_path / "bin", broken=broken)
        script = tmp_path / "script.json"
        script.write_text(json.dumps([NOTHING] * 200), encoding="utf-8")
        places = {
            "base_url": server.url,
            "endpoint": server.url.removesuffix("/v1"),
            "auth_mode": "api_key",
            "path": str(stage.cli.path) if stage.cli else "",
            "script": str(script),
        }
        for known in (row, PROVIDERS["openai_compatible"]):
            for item in known.fields:
                if item.name in places:
                    stage.environ[variables(item)[0]] = places[item.name]
        stage.environ |= {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_USE_VERTEX": "1"}
        for name, value in stage.environ.items():
            monkeypatch.setenv(name, value)
        return stage

    yield make
    for server in opened:
        server.__exit__(None, None, None)


BACKENDS = [name for name in available_backends() if name not in NEEDS_A_PACKAGE]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_leaves_and_shows_no_secret(
    backend: str,
    set_up: Callable[..., Stage],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:  # C241, C242
    caplog.set_level(logging.DEBUG)
    stage = set_up(backend, Unkind(lambda number: number > 2 and number % 3 == 0, (400, 500, 429)))
    code = train_main(["--config", str(stage.config())])
    shown = capfd.readouterr()
    assert code == 0, shown.err
    skillopt_main(["show", str(stage.world.out_root)])
    skillopt_main(["show", str(stage.world.out_root), "val-0"])
    skillopt_main(["show", str(stage.world.out_root), "--json"])
    skillopt_main(["config", "show", "--config", str(stage.config())])
    skillopt_main(["doctor", "--config", str(stage.config())])
    more = capfd.readouterr()
    assert not leaks(shown.out + shown.err + more.out + more.err + caplog.text)
    assert not leaks(stage.text)
    assert sent_something(stage)
    check_children(stage)


def sent_something(stage: Stage) -> bool:
    """The test is about something: keys went out, and what came back was kept as errors."""
    if stage.cli is not None:
        return len(stage.cli.calls) > 3
    if not any(item.secret for item in stage.row.fields):
        return True
    keys = {request.key for request in stage.world.server.requests}
    own = {MARKS[name] for item in stage.row.fields if item.secret for name in variables(item)}
    return bool(keys & own) and "[REDACTED]" in stage.text


def check_children(stage: Stage) -> None:
    """A program sees the variables that its module names and no other secret; none comes in by another way."""
    for call in stage.cli.calls if stage.cli else ():
        assert not leaks("\n".join(call.environment.values()), own_variables(stage.row))
        assert not leaks("\n".join((*call.argv, call.stdin, *call.files.values())))


@pytest.mark.parametrize("backend", [name for name in BACKENDS if PROVIDERS[name].capabilities & {"remote"}])
def test_a_fatal_error_shows_no_secret(
    backend: str, set_up: Callable[..., Stage], capfd: pytest.CaptureFixture[str]
) -> None:  # C242
    stage = set_up(backend, Unkind(lambda _: True, (401,)), broken=True)
    with pytest.raises(SkillOptError) as stopped:
        api.train(stage.config())
    if stage.cli is None:
        assert isinstance(stopped.value, AuthError)
    error = stopped.value
    assert not leaks("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    assert not leaks(repr(error) + repr(error.__cause__) + repr(error.__context__))
    assert not leaks(stage.text)
    train_main(["--config", str(stage.config())])
    shown = capfd.readouterr()
    assert not leaks(shown.out + shown.err)
    check_children(stage)


@pytest.mark.parametrize("backend", [row.name for row in available_rows() if any(f.secret for f in row.fields)])
def test_keys_in_the_file_are_not_copied(
    backend: str, set_up: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:  # C241
    stage = set_up(backend, Unkind(lambda _: False, (401,)))
    for name in MARKS:
        monkeypatch.delenv(name)
    given = {
        name: MARKS[variables(item)[0]] + name
        for row in PROVIDERS.values()
        for item in row.fields
        if item.secret
        for name in {*item.keys_for("optimizer")[:1], *item.keys_for("target")[:1]}
    }
    assert len(given) >= 8
    stage.model = given
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trained = api.train(stage.config())
    assert len(caught) >= len(given)
    assert not leaks("\n".join(str(warning.message) for warning in caught))
    assert not leaks(stage.text + repr(trained))
    assert {request.key for request in stage.world.server.requests} & set(given.values())
