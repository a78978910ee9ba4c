"""`skillopt-eval`, `skillopt show`, `skillopt config`, and what every command shares."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from worlds import TOPICS, World

from skillopt.store import Store
from skillopt.types import RolloutResult

HEAVY = ("openai", "azure", "yaml", "tiktoken", "json_repair", "requests", "tqdm", "pydantic", "tenacity", "rapidfuzz")


def run(module: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", f"skillopt.cli.{module}", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=cwd,
    )


def skill(world: World, *topics: str) -> Path:
    path = world.root / "SKILL.md"
    path.write_text("".join(f"- Rule {topic}: say its secret.\n" for topic in topics), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("split", "items"), [("train", 24), ("valid_seen", 12), ("valid_unseen", 12), ("val", 12), ("all", 48)]
)
def test_a_skill_is_scored_on_a_split(world: World, split: str, items: int) -> None:
    path = skill(world, *TOPICS[:3])
    done = run("evaluate", "--config", str(world.config()), "--skill", str(path), "--split", split, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["n_items"], summary["hard"], summary["n_errors"]) == (items, 0.5, 0)
    assert summary["by_task_type"]["amber"]["hard_acc"] == 1.0
    assert summary["by_task_type"]["feldspar"]["hard_acc"] == 0.0
    written = json.loads((world.out_root / "eval_summary.json").read_text(encoding="utf-8"))
    assert {"skill", "split", "n_items", "hard", "soft"} <= written.keys()
    assert len((world.out_root / "results.jsonl").read_text(encoding="utf-8").splitlines()) == items


def test_scoring_again_calls_nothing_and_another_skill_is_not_served_old_rows(world: World) -> None:
    arguments = ["--config", str(world.config()), "--split", "val", "--json", "--skill"]
    first = run("evaluate", *arguments, str(skill(world, "amber")))
    again = run("evaluate", *arguments, str(skill(world, "amber")))
    counted = ("spent", "usage_rows", "token_summary")  # these go on over all processes
    reports = [json.loads(done.stdout) for done in (first, again)]
    assert {k: v for k, v in reports[0].items() if k not in counted} == {
        k: v for k, v in reports[1].items() if k not in counted
    }
    assert [report["spent"]["calls"] for report in reports] == [13, 14]  # the second one made its preflight call
    assert len(world.requests("target-model")) == 12
    other = run("evaluate", *arguments, str(skill(world, *TOPICS)))
    assert json.loads(other.stdout)["hard"] == 1.0


def test_the_report_of_a_score_is_for_people(world: World) -> None:
    done = run("evaluate", "--config", str(world.config()), "--skill", str(skill(world, "amber")), "--split", "val")
    assert "hard 0.1667" in done.stdout
    assert "amber" in done.stdout
    assert str(world.out_root / "results.jsonl") in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--skill", "nowhere.md", "--split", "val"], "nowhere.md: no such file"),
        (["--skill", "SKILL.md", "--split", "vall"], "vall"),
        (["--split", "val"], "--skill"),
    ],
)
def test_what_cannot_be_scored_ends_with_code_2(world: World, arguments: list[str], said: str) -> None:
    skill(world, "amber")
    done = run("evaluate", "--config", str(world.config()), *arguments, cwd=world.root)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not world.server.requests


def test_a_run_and_an_item_are_shown(world: World) -> None:
    assert run("train", "--config", str(world.config())).returncode == 0
    shown = run("main", "show", str(world.out_root))
    assert shown.returncode == 0, shown.stderr
    assert "finished; best 1.0000" in shown.stdout
    assert "accept_new_best" in shown.stdout
    assert "test: 0.0000 before, 1.0000 after (12 items)" in shown.stdout
    item = run("main", "show", str(world.out_root), "val-3")
    assert item.stdout.count("== val-3 (val) under skill ") >= 2
    assert "[val-3] what is special about dolomite?" in item.stdout
    assert "reference: dolomite secret" in item.stdout
    rows: list[dict[str, Any]] = json.loads(run("main", "show", str(world.out_root), "val-3", "--json").stdout)
    assert {row["hard"] for row in rows} == {0.0, 1.0}
    state = json.loads(run("main", "show", str(world.out_root), "--json").stdout)
    assert [record["step"] for record in state["history"]] == [1, 2, 3, 4, 5, 6]


def test_showing_what_is_not_there_names_what_is(world: World) -> None:
    assert run("train", "--config", str(world.config(train={"num_epochs": 0}))).returncode == 0
    missing = run("main", "show", str(world.out_root), "val-33")
    assert missing.returncode == 2
    assert "val-3" in missing.stderr
    nowhere = run("main", "show", str(world.root / "data"))
    assert nowhere.returncode == 2
    assert "holds no run" in nowhere.stderr


def test_the_configuration_is_shown_with_its_sources(world: World) -> None:
    done = run("main", "config", "show", "--config", str(world.config()), "--cfg-options", "train.seed=9")
    assert done.returncode == 0, done.stderr
    lines = {line.split("#")[0].strip(): line.partition("#")[2].strip() for line in done.stdout.splitlines()}
    sources = {" ".join(name.split()): source for name, source in lines.items()}
    assert sources["seed 9"] == "--cfg-options train.seed"
    assert "config.yaml:" in sources["batch_size 8"]
    assert sources['openai_compatible api_key "unset"'] == "default"
    assert "config.yaml:" in sources[f'openai_compatible base_url "{world.server.url}"']
    assert sources['backend "openai_compatible"'].startswith("label openai_compatible (")
    assert "workers" in done.stdout and "judge_model" not in done.stdout


def test_the_configuration_as_json_with_flags_as_of_eval(world: World) -> None:
    arguments = ("--config", str(world.config()), "--json", "--command", "eval", "--target_model", "other")
    done = run("main", "config", "show", *arguments)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["command"] == "eval"
    assert shown["roles"]["target"]["model"] == {"value": "other", "source": "flag --target_model"}
    assert shown["settings"]["env"]["judge_model"] == {"value": None, "source": "default"}
    assert shown["settings"]["env"]["out_root"]["source"].startswith(str(world.root))


def test_names_that_mislead_are_said_on_standard_error(world: World) -> None:
    done = run("main", "config", "show", "--backend", "openai", "--qwen_chat_max_tokens", "5")
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 2
    assert "flag --backend: openai chooses codex (Codex's command line" in warnings[0]
    assert "flag --qwen_chat_max_tokens: qwen_chat_max_tokens has no effect" in warnings[1]


def test_the_schema_is_one_json_document() -> None:
    schema = json.loads(run("main", "config", "schema").stdout)
    assert "batch_size" in schema["properties"]["train"]["properties"]


@pytest.mark.parametrize("module", ["train", "evaluate", "main"])
def test_help_works_and_loads_nothing_heavy(module: str) -> None:
    code = (
        f"import sys\nfrom skillopt.cli.{module} import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
    assert done.stdout.rstrip().endswith("LOADED")


def test_importing_the_package_loads_nothing_but_itself() -> None:
    code = "import sys; before = set(sys.modules); import skillopt; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(eval(done.stdout)) <= {"skillopt", "importlib", "typing", "__future__"} | _importlib()


def _importlib() -> set[str]:
    code = "import sys; before = set(sys.modules); import importlib, typing; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(eval(done.stdout))


def test_every_exported_name_is_there() -> None:
    import skillopt

    assert dir(skillopt) == sorted(skillopt.__all__)
    for name in skillopt.__all__:
        assert getattr(skillopt, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = skillopt.nothing


@pytest.mark.parametrize("script", ["train.py", "eval_only.py"])
def test_the_scripts_are_the_commands(script: str) -> None:
    path = Path(__file__).parents[2] / "scripts" / script
    done = subprocess.run(
        [sys.executable, str(path), "--help"], capture_output=True, text=True, check=False,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--cfg-options" in done.stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_half_a_surrogate_pair_in_a_reply_can_be_shown(tmp_path: Path, form: list[str]) -> None:
    with contextlib.closing(Store(tmp_path / "store.sqlite")) as store:
        row = RolloutResult(id="a", hard=1.0, soft=1.0, trajectory=({"role": "assistant", "content": "é\ud800"},))
        store.put_rollout("k", row, skill_hash="h", split="val")
    command = [sys.executable, "-m", "skillopt.cli.main", "show", str(tmp_path), "a", *form]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"}, check=False)
    assert done.returncode == 0, done.stderr
    assert "é?" in done.stdout.decode("utf-8")


def test_a_scored_skill_and_a_run_that_has_no_step_are_shown(world: World) -> None:
    path = skill(world, *TOPICS[:3])
    assert run("evaluate", "--config", str(world.config()), "--skill", str(path), "--split", "val").returncode == 0
    shown = run("main", "show", str(world.out_root))
    assert "hard 0.5000" in shown.stdout, shown.stderr
    assert json.loads(run("main", "show", str(world.out_root), "--json").stdout)["hard"] == 0.5
    (world.out_root / "eval_summary.json").unlink()
    early = run("main", "show", str(world.out_root))
    assert early.returncode == 2
    assert "nothing is finished yet; 12 rollouts are kept" in early.stderr


def test_a_calibration_is_shown(world: World) -> None:
    assert run("main", "calibrate", "--config", str(world.config())).returncode == 0
    assert "The same skill twice on 12 validation items" in run("main", "show", str(world.out_root)).stdout


def test_an_address_from_the_environment_is_shown_with_its_source(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = world.config(model={"openai_compatible_base_url": None})
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://me:word@host:1/v1")
    done = run("main", "config", "show", "--config", str(config))
    assert re.search(r'base_url +"http://\[hidden\]@host:1/v1" +# env OPENAI_COMPATIBLE_BASE_URL', done.stdout)
