from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillopt.cli.arguments import Parsed, build_parser, parse
from skillopt.config.flags import flag_specs
from skillopt.config.resolve import resolve


def test_train_with_a_config() -> None:
    argv = ["--config", "c.yaml", "--batch_size", "3", "--use_gate", "no", "--cfg-options", "a=1", "b.c=2", "--json"]
    assert parse("train", argv) == Parsed(Path("c.yaml"), ("a=1", "b.c=2"), {"batch_size": 3, "use_gate": False}, True)


def test_the_last_list_of_options_holds() -> None:
    argv = ["--config", "c.yaml", "--cfg-options", "a=1", "--cfg-options", "b=2"]
    assert parse("train", argv).cfg_options == ("b=2",)


def test_train_without_a_config() -> None:
    parsed = parse("train", ["--skill", "S.md", "--data", "D.csv", "--scorer", "exact"])
    assert parsed.config_path is None
    assert parsed.flags == {"skill": "S.md", "data": "D.csv", "scorer": "exact", "env": "jsonl"}
    assert parse("train", ["--env", "mine"]).flags == {"env": "mine"}


def test_eval() -> None:
    parsed = parse("eval", ["--config", "c.yaml", "--skill", "S.md", "--split", "valid_seen", "--workers", "4"])
    assert (parsed.skill, parsed.split, parsed.flags) == (Path("S.md"), "valid_seen", {"workers": 4})
    assert parse("eval", ["--config", "c.yaml", "--skill", "S.md"]).split == "all"
    assert parse("eval", ["--skill", "S.md", "--data", "D.csv"]).flags == {"data": "D.csv", "env": "jsonl"}


def test_flags_go_into_resolve(tmp_path: Path) -> None:
    config_file = tmp_path / "c.yaml"
    config_file.write_text("train: {seed: 1}\n", encoding="utf-8")
    argv = ["--config", str(config_file), "--backend", "local_chat", "--edit_budget", "2", "--seed", "9"]
    parsed = parse("train", argv)
    config = resolve(parsed.config_path, flags=parsed.flags, cfg_options=parsed.cfg_options, environ={})
    assert (config.train.seed, config.optimizer.learning_rate, config.label) == (9, 2, "local_chat")
    assert config.source("model.backend") == "flag --backend"
    assert config.source("seed") == "flag --seed"


def test_retired_flag_is_accepted_and_not_shown() -> None:
    assert parse("train", ["--config", "c", "--max_analyst_rounds", "0"]).flags == {"max_analyst_rounds": "0"}
    assert "max_analyst_rounds" not in build_parser("train").format_help()


@pytest.mark.parametrize(
    ("command", "argv", "words"),
    [
        ("train", [], "--config FILE, or your own data with --skill S.md --data D.csv --scorer NAME"),
        ("train", ["--config", "c", "--lr_scheduler", "cosin"], "argument --lr_scheduler: must be one of"),
        ("train", ["--config", "c", "--use_gate", "maybe"], "argument --use_gate: must be true"),
        ("train", ["--config", "c", "--batch_size", "x"], "argument --batch_size: must be a whole number"),
        ("train", ["--config", "c", "--batch", "3"], "unrecognized arguments: --batch"),
        ("train", ["--config", "c", "--data", "a", "--data_path", "b"], "the same setting"),
        ("eval", ["--config", "c"], "--skill"),
        ("eval", ["--skill", "s"], "--config FILE"),
        ("eval", ["--config", "c", "--skill", "s", "--split", "dev"], "invalid choice"),
    ],
)
def test_wrong_usage_ends_with_2(command: str, argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(command, argv)  # type: ignore[arg-type]
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("command", ["train", "eval"])
def test_help_shows_every_flag(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(command, ["--help"])  # type: ignore[arg-type]
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    for spec in flag_specs(command):  # type: ignore[arg-type]
        assert spec.hidden or f"--{spec.name} " in shown
    assert "Exit codes" in shown


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys\nfrom skillopt.cli.arguments import build_parser\nbuild_parser('train').format_help()\n"
        "print([m for m in ('pydantic', 'yaml', 'openai', 'numpy', 'rapidfuzz', 'requests') if m in sys.modules])"
    )
    environ = {**os.environ, "PYTHONPATH": "."}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    assert done.stdout.strip() == "[]", done.stderr


def test_the_short_help_fits_on_few_screens(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("train", ["-h"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) < 100
    for flag in ("--skill", "--data", "--plan", "--scorer", "--openai_compatible_base_url", "--help"):
        assert f"{flag} " in shown


def test_the_name_of_a_key_is_answered_with_its_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("train", ["--config", "c.yaml", "--learning_rate", "3"])
    assert "did you mean --edit_budget?" in capsys.readouterr().err


def test_a_mistyped_flag_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse("train", ["--config", "c.yaml", "--num_epoch", "3"])
    assert caught.value.code == 2
    assert "did you mean --num_epochs?" in capsys.readouterr().err
